"""Zones of shots: the file that Av1an reads, and the list of x264."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, cast

import av
import imageio_ffmpeg
import pytest

import vkssim as library
from vkssim.errors import OptionError
from vkssim.search.command_line import av1an_command, av1an_zones, x264_zones
from vkssim.search.recipe import EncoderSpec, make_recipe
from vkssim.search.shots import Shot
from vkssim.search.source import SourceFacts
from vkssim.search.trial import Trial

from ..support.commands import run_program, vkssim
from .clips import ASKED, CUT, FRAMES, WORDS, arguments, source

pytestmark = pytest.mark.usefixtures("shared_device")


SHOTS = tuple(
    Shot(first, count, setting, True, cast(Trial, None), 1, {}) for first, count, setting in ((0, 100, 23.0), (100, 60, 27.5))
)


def lines(facts: SourceFacts, encoder: str, options: dict[str, str], **more: Any) -> list[str]:
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
def test_a_zone_has_the_whole_setting(facts: SourceFacts, encoder: str, options: dict[str, str], first: str) -> None:
    found = lines(facts, encoder, options)
    assert found[0] == first
    assert found[1] == first.replace("0 100", "100 160", 1).replace("23", "27.5", 1)


def test_the_depth_is_that_of_the_encode(facts: SourceFacts) -> None:
    """The programs of x264 and x265 write 8 bits unless they are told, and Av1an hands on 10."""
    assert lines(facts, "libx265", {}, bits=10)[0] == "0 100 x265 reset --crf 23 --output-depth 10"
    recipe = make_recipe(EncoderSpec("libx264", "preset=slow"), facts)
    found = shlex.split(av1an_command("-a clip.mkv", "my zones.txt", recipe))
    expected = "av1an -i|./-a clip.mkv|-e x264 --zones|my zones.txt|--pix-format yuv420p -o|./-a clip_preset-slow_shots.mkv"
    assert found == [
        word for part in expected.split("|") for word in ([part] if "clip" in part or "my " in part else part.split())
    ]


@pytest.mark.parametrize(
    ("encoder", "options", "text"),
    [
        ("libx264", {"maxrate": "2000k"}, "`options` maxrate: Av1an gives options to x264 itself, which lacks it"),
        ("libx265", {"flags": "+cgop"}, "`options` flags: Av1an gives options to x265 itself, which lacks it"),
    ],
)
def test_what_av1an_cannot_say_is_refused(facts: SourceFacts, encoder: str, options: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        lines(facts, encoder, options)
    assert text in str(caught.value)


def test_the_last_frame_of_a_zone_of_x264_belongs_to_it() -> None:
    assert x264_zones(SHOTS) == "0,99,crf=23/100,159,crf=27.5"


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
