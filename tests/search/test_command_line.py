"""The command lines of FFmpeg and of Av1an for an encode, and the zones of shots."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import av
import imageio_ffmpeg
import pytest

import vkssim as library
from vkssim.clips import Mastering, VideoFacts
from vkssim.search.command_line import av1an_command, av1an_zones, command_line, copying_words, shell_script
from vkssim.search.encoders import encoder_of
from vkssim.search.recipe import EncoderSpec, Recipe, make_recipe
from vkssim.search.source import Source
from vkssim.search.trial import Shot, Trial

from ..support.commands import run_program, vkssim
from .clips import ASKED, CUT, FRAMES, WORDS, arguments, remuxed, source

pytestmark = pytest.mark.usefixtures("shared_device")

START = ["ffmpeg", "-i", "clip.mkv", "-map", "0:v:0", "-c:v"]
RATE = ["-b:v", "500k", "-pass"]
COPIED = ["-map", "0:a?", "-map", "0:s?", "-c:a", "copy", "-c:s", "copy"]


def words(
    facts: VideoFacts, encoder: str, value: float, path: str = "clip.mkv", parameter: str | None = None, **more: Any
) -> list[str]:
    options = [f"{name}={text}" for name, text in more.pop("options", {}).items()]
    size = more.pop("size", None)
    spec = EncoderSpec(encoder, options, parameter, least=value, most=value, **more)
    return shlex.split(command_line(path, make_recipe(spec, facts, size), 0))


@pytest.mark.parametrize(
    ("encoder", "value", "more", "found"),
    [
        (
            "libx264",
            27,
            {"options": {"preset": "veryfast", "deblock": "1"}, "parameter": "qp"},
            ["-preset", "veryfast", "-deblock", "1", "-qp", "27", *COPIED, "clip_preset-veryfast_deblock-1_qp27.mkv"],
        ),
        (
            "libx265",
            27.5,
            {"options": {"aq-mode": "3", "rd": "2"}},
            ["-crf", "27.5", "-x265-params", "aq-mode=3:rd=2", *COPIED, "clip_aq-mode-3_rd-2_crf27.5.mkv"],
        ),
        (
            "libsvtav1",
            30,
            {"options": {"preset": "12", "film-grain": "8"}},
            ["-preset", "12", "-crf", "30", "-svtav1-params", "film-grain=8", *COPIED, "clip_preset-12_film-grain-8_crf30.mkv"],
        ),
        ("libx265", 30, {"bits": 10}, ["-pix_fmt", "yuv420p10le", "-crf", "30", *COPIED, "clip_crf30.mkv"]),
        ("libvpx-vp9", 40, {}, ["-crf", "40", "-b:v", "0", *COPIED, "clip_crf40.mkv"]),
        (
            "libx264",
            500,
            {"parameter": "bitrate", "two_pass": True},
            [*RATE, "1", "-f", "null", "-", "&&", *START, "libx264", *RATE, "2", *COPIED, "clip_bitrate500.mkv"],
        ),
    ],
    ids=["parameter", "own options", "SVT-AV1", "depth", "VP9 without a limit of the bit rate", "two passes"],
)
def test_the_setting_and_the_options(
    facts: VideoFacts, encoder: str, value: float, more: dict[str, Any], found: list[str]
) -> None:
    assert words(facts, encoder, value, **more) == [*START, encoder, *found]


FULL, LIMITED = "in_range=full:out_range=full", "in_range=limited:out_range=limited"


@pytest.mark.parametrize(
    ("layout", "span", "found"),
    [
        ("yuvj420p", 2, ["-vf", f"scale={FULL}", "-pix_fmt", "yuv420p", "-color_range", "pc", "-crf"]),
        ("gray", 2, ["-vf", f"scale={FULL}", "-pix_fmt", "yuv420p", "-color_range", "pc", "-crf"]),
        ("gray", 0, ["-vf", f"scale={LIMITED}", "-pix_fmt", "yuv420p", "-crf"]),
        ("yuv420p", 2, ["-crf"]),
    ],
)
def test_another_format_keeps_the_range(facts: VideoFacts, layout: str, span: int, found: list[str]) -> None:
    clip = replace(facts, format=layout, coded_format=layout, colours=(*facts.colours[:3], span))
    assert words(clip, "libvpx-vp9", 40)[7 : 7 + len(found)] == found


def test_nvenc_has_no_limit_of_the_bit_rate(facts: VideoFacts) -> None:
    kind = encoder_of("hevc_nvenc")
    recipe = Recipe(kind, kind.parameter(None, least=30, most=30), facts, facts.format)
    found = shlex.split(command_line("clip.mkv", recipe, 0))
    assert found[6:13] == ["hevc_nvenc", "-cq", "30", "-rc", "vbr", "-b:v", "0"]


def test_options_in_names_are_short_and_have_no_signs(facts: VideoFacts) -> None:
    name = words(facts, "libx264", 30, options={"deblock": "-1,-1", "partitions": "p8x8/b8x8/i8x8"})[-1]
    assert name == "clip_deblock--1,-1_partitions-p8x8-b8x8-i8x8_crf30.mkv"
    zones = ";".join(f"{number},{number},q=30" for number in range(50))
    assert len(words(facts, "libx265", 30, options={"zones": zones.replace(";", "/")})[-1]) < 130


@pytest.mark.parametrize("stem", ["n" * 236, "ä" * 125])
def test_a_long_name_is_cut_to_the_limit_of_file_systems(facts: VideoFacts, tmp_path: Path, stem: str) -> None:
    name = words(facts, "libx264", 30, f"{stem}.mkv", options={"preset": "veryfast"}, size=(32, 24))[-1]
    assert name.startswith(stem[:100])
    assert name.endswith(f"{stem[0]}_32x24_preset-veryfast_crf30.mkv")
    (tmp_path / name).touch()


def test_a_script_overwrites_nothing_and_ends_with_the_first_command_that_fails(tmp_path: Path) -> None:
    (tmp_path / "it's there.mkv").write_text("old")
    commands = {"new.mkv": "echo new >new.mkv", "it's there.mkv": "echo new >'it'\\''s there.mkv'"}
    script = shell_script(commands)
    for code, said in ((1, "it's there.mkv exists; move it away, and run this script again\n"), (0, "")):
        done = run_program("sh", "-c", script, cwd=tmp_path, text=True)
        assert (done.returncode, done.stderr) == (code, said)
        assert (tmp_path / "new.mkv").exists() == (code == 0)
        (tmp_path / "it's there.mkv").unlink()
    done = run_program("sh", "-c", shell_script({"a.mkv": "false", "b.mkv": "echo >b.mkv"}), cwd=tmp_path)
    assert (done.returncode, (tmp_path / "b.mkv").exists()) == (1, False)


def test_a_rendition_is_scaled_and_has_no_sound(facts: VideoFacts) -> None:
    found = words(facts, "libx264", 30, size=(32, 24))
    scaled = ["-vf", "scale=32:24:flags=bicubic+accurate_rnd"]
    start = ["ffmpeg", "-nostdin", *START[1:]]
    assert found == [*start, "libx264", *scaled, "-crf", "30", "clip_32x24_crf30.mkv"]
    full = words(replace(facts, colours=(1, 1, 1, 2)), "libx265", 30, bits=10, size=(32, 24))
    assert full[full.index("-vf") + 1] == f"{scaled[1]}:{FULL}", "another format keeps the range"
    whole = words(facts, "libx264", 30, size=(facts.width, facts.height))
    assert whole == [*start, "libx264", "-crf", "30", "clip_64x48_crf30.mkv"]


def test_what_the_container_crops_is_cropped_once(facts: VideoFacts) -> None:
    """By the filter, unless FFmpeg has done so already, as from version 7.1 on."""
    cropped = replace(facts, width=48, height=32, crop=(48, 32, 6, 10))
    crop = "crop=48:32:'if(gt(iw,48),6)':'if(gt(ih,32),10)'"
    found = words(cropped, "libx264", 30)
    assert found[found.index("-vf") + 1] == crop
    found = words(cropped, "libx264", 30, size=(24, 16))
    assert found[found.index("-vf") + 1] == f"{crop},scale=24:16:flags=bicubic+accurate_rnd"


@pytest.mark.parametrize(
    ("path", "read", "written"),
    [
        ("-r.mkv", "./-r.mkv", "./-r_crf30.mkv"),
        ("a b's/the clip.mp4", "a b's/the clip.mp4", "the clip_crf30.mkv"),
        ("/x/$HOME;.mkv", "/x/$HOME;.mkv", "$HOME;_crf30.mkv"),
        ("12:30 clip.mkv", "./12:30 clip.mkv", "./12:30 clip_crf30.mkv"),
        ("a:b/clip.mkv", "./a:b/clip.mkv", "clip_crf30.mkv"),
        ("-a/clip.mkv", "./-a/clip.mkv", "clip_crf30.mkv"),
        ("a/b:c.mkv", "a/b:c.mkv", "./b:c_crf30.mkv"),
        ("/a:b/c:d.mkv", "/a:b/c:d.mkv", "./c:d_crf30.mkv"),
        ("https://host:80/clip.mkv", "https://host:80/clip.mkv", "clip_crf30.mkv"),
    ],
)
def test_any_name_is_one_word(facts: VideoFacts, path: str, read: str, written: str) -> None:
    found = words(facts, "libx264", 30, path)
    assert found[2] == read
    assert found[-1] == written


@pytest.mark.parametrize(
    ("name", "expected", "output"),
    [
        ("%02d.jpg", ["-pattern_type", "sequence", "-start_number", "7"], "pictures_crf30.mkv"),
        ("0*.jpg", ["-pattern_type", "glob"], "0_crf30.mkv"),
    ],
    ids=["numbers", "glob"],
)
def test_a_sequence_of_pictures_is_found(
    facts: VideoFacts, tmp_path: Path, name: str, expected: list[str], output: str
) -> None:
    for number in (7, 8):
        (tmp_path / f"{number:02d}.jpg").touch()
    found = words(facts, "libx264", 30, str(tmp_path / name))
    assert found[1 : len(expected) + 2] == [*expected, "-i"]
    assert found[-1] == output


# -- sound, subtitles and attachments -----------------------------------------------------------------------------------

SOUND = ["-map", "0:a?"]
ALL = [*SOUND, "-map", "0:s?", "-c:a", "copy", "-c:s"]


def test_the_streams_of_a_clip(tmp_path: Path) -> None:
    clip = source(tmp_path / "clip.mkv", codec="libx264", options={"preset": "ultrafast"})
    more = remuxed(clip, tmp_path / "more.mkv", subtitles=["subrip", "hdmv_pgs_subtitle"], font=True)
    text = remuxed(clip, tmp_path / "more.mp4", subtitles=["mov_text"])
    found = [(facts.subtitles, facts.attachments) for facts in (Source(path).facts for path in (clip, more, text))]
    assert found == [((), False), (("subrip", "hdmv_pgs_subtitle"), True), (("mov_text",), False)]


@pytest.mark.parametrize(
    ("subtitles", "font", "words"),
    [
        ((), False, [*ALL, "copy"]),
        (("subrip", "hdmv_pgs_subtitle"), False, [*ALL, "copy"]),
        (("mov_text", "mov_text"), False, [*ALL, "srt"]),
        (("ass", "mov_text"), False, [*ALL[:-1], "-c:s:0", "copy", "-c:s:1", "srt"]),
        (("subrip", "", "dvb_teletext"), False, [*SOUND, "-map", "0:s:0", "-c:a", "copy", "-c:s", "copy"]),
        (
            ("", "mov_text", "dvd_subtitle"),
            False,
            [*SOUND, "-map", "0:s:1", "-map", "0:s:2", "-c:a", "copy", "-c:s:0", "srt", "-c:s:1", "copy"],
        ),
        (("dvb_teletext",), False, [*SOUND, "-c:a", "copy"]),
        (("ass",), True, [*SOUND, "-map", "0:s?", "-map", "0:t?", "-c:a", "copy", "-c:s", "copy"]),
    ],
)
def test_subtitles_become_what_the_file_can_hold(subtitles: tuple[str, ...], font: bool, words: list[str]) -> None:
    assert copying_words(subtitles, attachments=font) == words


# -- zones of shots --------------------------------------------------------------------------------------------------------

SHOTS = tuple(
    Shot(first, count, setting, True, cast(Trial, None), 1, {}) for first, count, setting in ((0, 100, 23.0), (100, 60, 27.5))
)


def lines(facts: VideoFacts, encoder: str, options: dict[str, str], **more: Any) -> list[str]:
    spec = EncoderSpec(encoder, [f"{name}={value}" for name, value in options.items()], **more)
    return av1an_zones(SHOTS, make_recipe(spec, facts)).splitlines()


@pytest.mark.parametrize(
    ("encoder", "options", "first"),
    [
        ("libx264", {"preset": "slow", "tune": "film"}, "0 100 x264 reset --crf 23 --preset slow --tune film"),
        ("libx264", {"mbtree": "0", "bf": "5", "g": "60"}, "0 100 x264 reset --crf 23 --bframes 5 --keyint 60 --no-mbtree"),
        (
            "libx265",
            {"preset": "fast", "sao": "0", "aq-mode": "3"},
            "0 100 x265 reset --crf 23 --preset fast --aq-mode 3 --no-sao",
        ),
        ("libsvtav1", {"preset": "8", "film-grain": "8"}, "0 100 svt-av1 reset --crf 23 --preset 8 --film-grain 8"),
        (
            "libvpx-vp9",
            {"cpu-used": "4", "row-mt": "1", "deadline": "good"},
            "0 100 vpx reset --cq-level=23 --end-usage=q --passes 1 --cpu-used=4 --row-mt=1 --good",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_zone_has_the_whole_setting(facts: VideoFacts, encoder: str, options: dict[str, str], first: str) -> None:
    found = lines(facts, encoder, options)
    assert found[0] == first
    assert found[1] == first.replace("0 100", "100 160", 1).replace("23", "27.5", 1)


def test_only_programs_with_options_for_it_get_the_hdr_metadata(facts: VideoFacts) -> None:
    points = ((0.68, 0.32), (0.265, 0.69), (0.15, 0.06), (0.3127, 0.329))
    hdr = replace(facts, mastering=Mastering((*points, (0.0001, 1000.0)), (1000, 400)))
    names = {"libx265": "--master-display ", "libsvtav1": "--mastering-display ", "libvpx-vp9": None}
    for encoder, name in names.items():
        found = lines(hdr, encoder, {})[0]
        assert ("master" in found, name is None or name in found) == (name is not None, True), found


def test_the_depth_is_that_of_the_encode(facts: VideoFacts) -> None:
    """The programs of x264 and x265 write 8 bits unless they are told, and Av1an hands on 10."""
    assert lines(facts, "libx265", {}, bits=10)[0] == "0 100 x265 reset --crf 23 --output-depth 10"
    recipe = make_recipe(EncoderSpec("libx264", "preset=slow"), facts)
    found = shlex.split(av1an_command("-a clip.mkv", "my zones.txt", recipe))
    expected = "av1an -i|./-a clip.mkv|-e x264 --zones|my zones.txt|--pix-format yuv420p -o|./-a clip_preset-slow_shots.mkv"
    assert found == [
        word for part in expected.split("|") for word in ([part] if "clip" in part or "my " in part else part.split())
    ]


def test_the_commands_are_printed_and_the_one_of_x264_encodes_the_zones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source(tmp_path / "clip.mkv")
    result = vkssim("search", "clip.mkv", *WORDS, "--target", "float_ssim=0.93", "--shots", "zones.txt")
    assert result.exit_code == 0, result.stderr
    assert "x264 reset --crf " in Path("zones.txt").read_text()
    av1an, ffmpeg = (line for line in result.stdout.splitlines() if line.startswith(("av1an ", "ffmpeg ")))
    assert "--zones zones.txt --pix-format yuv420p" in av1an
    program, *rest = shlex.split(ffmpeg)
    assert program == "ffmpeg"
    said = run_program(imageio_ffmpeg.get_ffmpeg_exe(), *rest)
    assert said.returncode == 0, said.stderr
    out = Path("clip_preset-ultrafast_shots.mkv")
    settings = [shot.setting for shot in library.search_shots("clip.mkv", **arguments(targets="float_ssim=0.93", **ASKED))]
    assert f"zones=0,{CUT - 1},crf={settings[0]:g}/{CUT},{FRAMES - 1},crf={settings[1]:g}" in ffmpeg
    with av.open(str(out)) as container:
        assert sum(1 for _ in container.decode(video=0)) == FRAMES
