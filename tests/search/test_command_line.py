"""FFmpeg's command line for an encode."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vkssim.frames.picture.steps import Crop
from vkssim.search.command_line import command_line, shell_script
from vkssim.search.encoders import encoder_of
from vkssim.search.recipe import EncoderSpec, Recipe, make_recipe
from vkssim.search.source import OtherStreams, SourceFacts

from ..support.commands import run_program

START = ["ffmpeg", "-i", "clip.mkv", "-map", "0:v:0", "-c:v"]
COPIED = ["-map", "0:a?", "-map", "0:s?", "-c:a", "copy", "-c:s", "copy"]


def words(
    facts: SourceFacts, encoder: str, value: float, path: str = "clip.mkv", parameter: str | None = None, **more: Any
) -> list[str]:
    options = [f"{name}={text}" for name, text in more.pop("options", {}).items()]
    size = more.pop("size", None)
    spec = EncoderSpec(encoder, options, parameter, least=value, most=value, **more)
    return shlex.split(command_line(path, make_recipe(spec, facts, size), 0))


def test_the_setting_and_the_options(facts: SourceFacts) -> None:
    found = words(facts, "libx264", 27, options={"preset": "veryfast", "deblock": "1"}, parameter="qp")
    encoder = ["libx264", "-preset", "veryfast", "-deblock", "1", "-qp", "27"]
    assert found == [*START, *encoder, *COPIED, "clip_preset-veryfast_deblock-1_qp27.mkv"]


def test_what_only_the_encoder_knows(facts: SourceFacts) -> None:
    found = words(facts, "libx265", 27.5, options={"aq-mode": "3", "rd": "2"})
    encoder = ["libx265", "-crf", "27.5", "-x265-params", "aq-mode=3:rd=2"]
    assert found == [*START, *encoder, *COPIED, "clip_aq-mode-3_rd-2_crf27.5.mkv"]
    found = words(facts, "libsvtav1", 30, options={"preset": "12", "film-grain": "8"})
    assert found[6:] == ["libsvtav1", "-preset", "12", "-crf", "30", "-svtav1-params", "film-grain=8", *found[13:]]


def test_another_depth(facts: SourceFacts) -> None:
    assert words(facts, "libx265", 30, bits=10)[6:10] == ["libx265", "-pix_fmt", "yuv420p10le", "-crf"]


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
def test_another_format_keeps_the_range(facts: SourceFacts, layout: str, span: int, found: list[str]) -> None:
    clip = replace(facts, format=layout, coded_format=layout, colours=(*facts.colours[:3], span))
    assert words(clip, "libvpx-vp9", 40)[7 : 7 + len(found)] == found


def test_a_rendition_of_another_format_keeps_the_range(facts: SourceFacts) -> None:
    found = words(replace(facts, colours=(1, 1, 1, 2)), "libx265", 30, bits=10, size=(32, 24))
    assert found[found.index("-vf") + 1] == f"scale=32:24:flags=bicubic+accurate_rnd:{FULL}"


def test_subtitles_that_the_file_cannot_hold_become_others(facts: SourceFacts) -> None:
    clip = replace(facts, others=OtherStreams(("mov_text",)))
    assert words(clip, "libx264", 30)[-3:] == ["-c:s", "srt", "clip_crf30.mkv"]


def test_crf_of_vp9_has_no_limit_of_the_bit_rate(facts: SourceFacts) -> None:
    assert words(facts, "libvpx-vp9", 40)[6:11] == ["libvpx-vp9", "-crf", "40", "-b:v", "0"]


def test_nvenc_has_no_limit_of_the_bit_rate(facts: SourceFacts) -> None:
    kind = encoder_of("hevc_nvenc")
    recipe = Recipe(kind, kind.parameter(None, least=30, most=30), facts, facts.format)
    found = shlex.split(command_line("clip.mkv", recipe, 0))
    assert found[6:13] == ["hevc_nvenc", "-cq", "30", "-rc", "vbr", "-b:v", "0"]


def test_options_in_names_are_short_and_have_no_signs(facts: SourceFacts) -> None:
    name = words(facts, "libx264", 30, options={"deblock": "-1,-1", "partitions": "p8x8/b8x8/i8x8"})[-1]
    assert name == "clip_deblock--1,-1_partitions-p8x8-b8x8-i8x8_crf30.mkv"
    zones = ";".join(f"{number},{number},q=30" for number in range(50))
    assert len(words(facts, "libx265", 30, options={"zones": zones.replace(";", "/")})[-1]) < 130


@pytest.mark.parametrize("stem", ["n" * 236, "ä" * 125])
def test_a_long_name_is_cut_to_the_limit_of_file_systems(facts: SourceFacts, tmp_path: Path, stem: str) -> None:
    name = words(facts, "libx264", 30, f"{stem}.mkv", options={"preset": "veryfast"}, size=(32, 24))[-1]
    assert name.startswith(stem[:100])
    assert name.endswith(f"{stem[0]}_32x24_preset-veryfast_crf30.mkv")
    (tmp_path / name).touch()


def test_a_colon_within_an_option_is_not_its_end(facts: SourceFacts) -> None:
    recipe = make_recipe(EncoderSpec("libx265", parameter="bitrate", least=500, most=500, two_pass=True), facts)
    assert recipe.options_of(0, {"stats": r"C:\it's"})["x265-params"] == r"stats=C\:\\it\'s"


def test_a_script_overwrites_nothing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "it's there.mkv").write_text("old")
    commands = {"new.mkv": "echo new >new.mkv", "it's there.mkv": "echo new >'it'\\''s there.mkv'"}
    script = shell_script(commands)
    for code, said in ((1, "it's there.mkv exists; move it away, and run this script again\n"), (0, "")):
        done = run_program("sh", "-c", script, cwd=tmp_path, text=True)
        assert (done.returncode, done.stderr) == (code, said)
        assert (tmp_path / "new.mkv").exists() == (code == 0)
        (tmp_path / "it's there.mkv").unlink()


def test_a_script_ends_with_the_first_command_that_fails(tmp_path: Path) -> None:
    done = run_program("sh", "-c", shell_script({"a.mkv": "false", "b.mkv": "echo >b.mkv"}), cwd=tmp_path)
    assert done.returncode == 1
    assert not (tmp_path / "b.mkv").exists()


def test_two_passes_are_two_commands(facts: SourceFacts) -> None:
    found = words(facts, "libx264", 500, parameter="bitrate", two_pass=True)
    both = [*START, "libx264", "-b:v", "500k", "-pass"]
    assert found == [*both, "1", "-f", "null", "-", "&&", *both, "2", *COPIED, "clip_bitrate500.mkv"]


def test_a_rendition_is_scaled_and_has_no_sound(facts: SourceFacts) -> None:
    found = words(facts, "libx264", 30, size=(32, 24))
    scaled = ["-vf", "scale=32:24:flags=bicubic+accurate_rnd"]
    start = ["ffmpeg", "-nostdin", *START[1:]]
    assert found == [*start, "libx264", *scaled, "-crf", "30", "clip_32x24_crf30.mkv"]
    whole = words(facts, "libx264", 30, size=(facts.width, facts.height))
    assert whole == [*start, "libx264", "-crf", "30", "clip_64x48_crf30.mkv"]


def test_what_the_container_crops_is_cropped_once(facts: SourceFacts) -> None:
    """By the filter, unless FFmpeg has done so already, as from version 7.1 on."""
    cropped = replace(facts, width=48, height=32, crop=Crop(48, 32, 6, 10))
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
def test_any_name_is_one_word(facts: SourceFacts, path: str, read: str, written: str) -> None:
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
    facts: SourceFacts, tmp_path: Path, name: str, expected: list[str], output: str
) -> None:
    for number in (7, 8):
        (tmp_path / f"{number:02d}.jpg").touch()
    found = words(facts, "libx264", 30, str(tmp_path / name))
    assert found[1 : len(expected) + 2] == [*expected, "-i"]
    assert found[-1] == output
