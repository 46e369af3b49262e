"""Ladders: the model of renditions, the search itself on a tiny clip, and the command with its page."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import vkssim as library
from vkssim.errors import EncodeError, OptionError
from vkssim.search.defaults import APPLE_H264
from vkssim.search.ladder import LadderSearch
from vkssim.search.rungs import LadderOptions, LadderTrial, rung_rates

from ..frames.encoding import encode_frames
from ..support.children import in_child
from ..support.commands import vkssim
from . import clips
from .clips import ASKED, arguments, break_settings, damage_settings

pytestmark = pytest.mark.usefixtures("shared_device")
WIDTH, HEIGHT, FRAMES = 192, 144, 6
HEIGHTS = (144, 96, 72)


LIMITS: dict[str, Any] = {"least_bitrate": 60.0, "most_bitrate": 4000.0, "fixed": "144:1000,96:400,72:200,72:100"}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A moving picture that is soft enough for a small rendition to be the better one at a low bit rate."""
    path = tmp_path_factory.mktemp("ladder") / "clip.mkv"
    _encode_soft(path)
    return str(path)


@in_child
def _encode_soft(path: Path) -> None:
    rng = np.random.default_rng(6)
    coarse = rng.integers(0, 200, (24, 30)).repeat(8, 0).repeat(8, 1)[: HEIGHT + FRAMES, : WIDTH + FRAMES]
    texture = coarse + rng.integers(0, 30, coarse.shape)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for number in range(FRAMES):
            luma = texture[number : number + HEIGHT, number : number + WIDTH].astype(np.uint8)
            planes = np.concatenate([luma, np.full((HEIGHT // 2, WIDTH), 128, np.uint8)])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
        container.mux(stream.encode(None))


def searched(clip: str, **more: Any) -> LadderSearch:
    asked: dict[str, Any] = {**ASKED, **LIMITS, "heights": HEIGHTS, "score": "float_ssim", **more}
    return library.search_ladder(clip, **arguments(**asked))


@pytest.fixture(scope="module")
def done(clip: str, shared_device: object) -> LadderSearch:
    search = searched(clip)
    assert search.choice
    return search


def test_rungs_have_the_best_scores_for_their_bit_rates(done: LadderSearch) -> None:
    rungs, trials = done.choice.rungs, [one for one in done.trials if one.height in HEIGHTS]
    assert len(rungs) >= 3
    for rung in rungs:
        cheaper = [one for one in trials if one.trial.kbps <= rung.trial.kbps]
        best = max(one.trial.values["float_ssim:mean"] for one in cheaper)
        assert rung.trial.values["float_ssim:mean"] == best
    rates = [rung.trial.kbps for rung in rungs]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] <= 4000
    assert len(done.trials) < 3 * 52 / 4, "few of all encodes are made"
    assert len({(one.height, one.trial.setting) for one in done.trials}) == len(done.trials)


def test_the_fixed_ladder_is_encoded_near_its_bit_rates(done: LadderSearch) -> None:
    assert [one.height for one in done.choice.fixed] == [144, 96, 72, 72]
    for one, rate in zip(done.choice.fixed, (1000, 400, 200, 100), strict=True):
        assert abs(math.log2(one.trial.kbps / rate)) < 0.2
    assert done.choice.deltas is not None


def test_a_rendition_is_scored_as_score_files_does(clip: str, done: LadderSearch, tmp_path: Path) -> None:
    """The same frames are scaled, encoded and written here, and scored with `scale`."""
    one = next(one for one in done.trials if one.height == 96)
    path = tmp_path / "small.mkv"
    _encode_smaller(clip, path, one)
    report = library.score_files(clip, path, features="float_ssim=scale=1", pictures=library.PictureOptions(scale="reference"))
    assert report.pooled()["float_ssim"]["mean"] == pytest.approx(one.trial.values["float_ssim:mean"], abs=1e-6)


@in_child
def _encode_smaller(clip: str, path: Path, one: LadderTrial) -> None:
    with av.open(clip) as source, av.open(str(path), "w") as container:
        options = {"preset": "ultrafast", "crf": f"{one.trial.setting:g}"}
        stream: Any = container.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = one.width, one.height, "yuv420p"
        for frame in source.decode(video=0):
            small = frame.reformat(width=one.width, height=one.height, interpolation=4 | 0x40000 | 0x80000, threads=1)
            small.pict_type = 0
            container.mux(stream.encode(small))
        container.mux(stream.encode(None))


def test_the_first_rung_is_the_cheapest_that_meets_the_target(clip: str) -> None:
    search = searched(clip, targets="float_ssim=0.9", score=None, fixed=None)
    choice = search.choice
    met = [one for one in search.trials if one.trial.meets]
    assert choice.meets
    assert choice.rungs[0].trial.kbps == min(one.trial.kbps for one in met)
    assert choice.fixed == ()
    assert choice.deltas is None


def test_without_a_target_the_first_rung_needs_no_more_than_a_good_score(clip: str) -> None:
    """An encode with a higher score costs more and shows no difference; a limit of the bit rates goes before."""
    asked: dict[str, Any] = {"fixed": None, "heights": [144], "most_bitrate": 1e6}
    search = searched(clip, **asked)
    first = search.choice.rungs[0]
    reached = [one.kbps for one in search.trials if one.trial.values["float_ssim:mean"] >= 0.995]
    assert first.kbps == min(reached)
    assert search.limits == {"float_ssim:mean": 0.995}
    choice = searched(clip, **asked, score="float_ssim:mean_db").choice
    assert choice.rungs[0].trial.setting == first.trial.setting

    limited = searched(clip, **{**asked, "most_bitrate": 300.0}).choice
    assert limited.meets, "nobody asked for that score"
    assert "no encode of at most `most_bitrate`, 300 kbit/s, reaches float_ssim:mean=0.995" in limited.notes


def test_a_score_of_an_unknown_scale_has_no_target_of_its_own(clip: str) -> None:
    search = searched(clip, fixed=None, heights=[144], features="float_psnr", score="float_psnr", trials=4)
    assert search.choice.rungs
    assert search.limits == {}


def test_sizes_that_are_too_narrow_are_named_and_rungs_of_a_fixed_ladder_left_out(tmp_path: Path) -> None:
    frame = av.VideoFrame.from_ndarray(np.full((480, 80), 99, np.uint8), "gray")
    narrow = encode_frames(tmp_path / "narrow.mkv", [frame], "ffv1")
    search = searched(narrow, heights=[480], fixed="234:100,300:150,390:200,400:400,480:800,480:1600", trials=1)
    assert search.choice.notes[0] == "rungs of the fixed ladder are left out, heights 234, 300: no side may be below 64"
    with pytest.raises(OptionError, match="`fixed` 401: it must be even"):
        searched(narrow, heights=[480], fixed="401:100,390:200,400:400,480:800")
    with pytest.raises(OptionError, match="`heights` 300: the width would be 50, and it must be 64 or more"):
        searched(narrow, heights=[480, 300])


ABOVE = {"fixed": f"1080:6000,720:3000,720:2000,{LIMITS['fixed']}"}
TOO_FEW = "no BD-rate: it needs 4 rungs of the fixed ladder that are no larger than the source; there are 0"


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        (
            {"heights": [288, 216, 144], "fixed": None},
            "sizes of the ladder are left out, heights 288, 216: the source's height is",
        ),
        (ABOVE, "rungs of the fixed ladder are left out, heights 1080, 720: the source's height is 144"),
        ({"fixed": APPLE_H264}, TOO_FEW),
        ({}, "the search ended after as many trials as `trials` allows, so that rungs may be missing"),
    ],
    ids=["sizes", "rungs", "too few rungs", "trials"],
)
def test_what_is_left_out_is_noted(clip: str, asked: dict[str, Any], note: str) -> None:
    search = searched(clip, **{"heights": [144], **asked, "trials": 1})
    assert search.choice.notes[0].startswith(note)
    assert sum("left out" in note for note in search.choice.notes) == ("left out" in note)
    assert [one.height for one in search.trials] == [144]


def test_a_first_rung_below_the_least_bit_rate_is_noted(clip: str) -> None:
    choice = searched(clip, fixed=None, heights=[144], targets="float_ssim=0.5", score=None, least_bitrate=3000).choice
    assert len(choice.rungs) == 1
    assert "less than `least_bitrate`, which is 3000" in choice.notes[0]


def test_a_setting_that_cannot_be_used_is_left_out_and_named(clip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"heights": [144], "fixed": None, "targets": "float_ssim=0.9", "score": None}
    first = searched(clip, **asked)
    broken = first.choice.rungs[0].trial.setting
    break_settings(monkeypatch, lambda setting, _output: setting == broken)
    choice = searched(clip, **asked).choice
    assert choice.meets
    assert choice.rungs[0].trial.setting == broken - 1
    assert choice.notes[0].startswith(f"192x144, crf {broken:g}: vp9 cannot decode the stream of libx264")
    break_settings(monkeypatch, lambda _place, _output: True)
    with pytest.raises(EncodeError, match="192x144, crf"):
        assert searched(clip, **asked).choice


@pytest.mark.parametrize("target", [(), ("--target", "float_ssim=0.9")], ids=["without a target", "with a target"])
def test_damaged_streams_are_no_rungs(clip: str, monkeypatch: pytest.MonkeyPatch, target: tuple[str, ...]) -> None:
    """Other settings stand in for them, and no curve learns from them."""
    words = (*WORDS[:1], "144", *WORDS[2:], "--fixed", "none", "--json", "-q", *target)
    words = (*words, "--least-bitrate", "20", "--most-bitrate", "4000")

    def rungs() -> tuple[list[Any], str]:
        result = vkssim("ladder", clip, *words)
        assert result.exit_code == 0, result.stderr
        choice = json.loads(result.stdout)["choice"]
        return [(one["trial"]["setting"], one["trial"]["kbps"]) for one in choice["rungs"]], " ".join(choice["notes"])

    sound, notes = rungs()
    assert "scores far lower" not in notes
    broken = sound[1][0]
    damage_settings(monkeypatch, lambda setting: setting == broken)
    others, notes = rungs()
    assert f"192x144, crf {broken:g} scores far lower than" in notes
    assert others[0] == sound[0]
    assert others[2:] == sound[2:]
    assert abs(others[1][0] - broken) == 1


def test_encodes_of_no_bit_rate_are_no_rungs(tmp_path: Path) -> None:
    """A picture that is shown for a day has 0.000 kbit/s, which has no logarithm."""
    frames = [av.VideoFrame.from_ndarray(np.full((144, 96), 99, np.uint8), "yuv420p") for _ in range(3)]
    path = encode_frames(tmp_path / "still.mkv", frames, "ffv1", rate=Fraction(1, 86400))
    search = searched(path, heights=[96], fixed="96:1000,96:400,96:200,96:100", least_bitrate=1e-6, trials=6)
    assert search.choice.rungs == ()
    assert {one.trial.kbps for one in search.trials} == {0.0}


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"heights": [288, 216]}, "`heights` 288, 216: the source's height is 144; a ladder needs a size that is no larger"),
        ({"heights": [62]}, "`heights` 62: it must be even, between 64 and the source's height, which is 144"),
        ({"heights": []}, "a ladder needs sizes"),
        ({"fixed": "1080"}, "`fixed` '1080' is not of the form"),
        ({"factor": 1.0}, "`factor` is 1"),
        ({"least_bitrate": 5000}, "`least_bitrate` is 5000"),
        ({"least_bitrate": 1e-300, "most_bitrate": 1e300}, "both must be 1e-06 to 1e+09"),
        ({"heights": "144,96"}, "`heights` is '144,96', of type str; it must be Sequence[int]"),
        ({"parameter": "bitrate"}, "searched by the quality"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_is_refused(clip: str, more: dict[str, Any], text: str) -> None:
    with pytest.raises(OptionError) as caught:
        searched(clip, **more)
    assert text in str(caught.value)


def test_bit_rates_are_spaced_evenly() -> None:
    ladder = LadderOptions((), (), 100, 800, 2.0)
    assert rung_rates(ladder, None) == pytest.approx([800, 400, 200, 100])
    assert len(rung_rates(replace(ladder, most_bitrate=801), None)) == 5
    assert rung_rates(replace(ladder, most_bitrate=50), None) == [50]


WORDS = ("--heights", "144,96,72", *clips.WORDS)


def test_the_command_prints_both_ladders_and_draws_the_page(clip: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    limits = ("--least-bitrate", "60", "--most-bitrate", "4000", "--fixed", LIMITS["fixed"], "--score", "float_ssim")
    script = tmp_path / "rungs.sh"
    result = vkssim("ladder", clip, *WORDS, *limits, "--html", str(page), "--commands", str(script))
    assert result.exit_code == 0, result.stderr
    assert "the new ladder" in result.stdout
    assert "BD-rate of the new ladder against the fixed one" in result.stdout
    text = unescape(page.read_text())
    assert re.search(r"<title>Ladder of clip.mkv: \d rungs – vkssim</title>", text)
    answer, _, rest = text.partition("<h2>Rate and quality</h2>")
    rows = re.findall(
        r"(\d+)×(\d+)</span></th><td class=\"\">(\d+)</td><td class=\"\">([\d.,]+)</td><td class=\"\">([01]\.\d+)", answer
    )
    printed = re.findall(r"(\d+)x(\d+)\W+(\d+)\W+([01]\.\d+)", result.stdout.split("the fixed ladder, as")[0])
    assert [row[:3] for row in rows] == [row[:3] for row in printed]
    assert [float(row[4]) for row in rows] == pytest.approx([float(row[3]) for row in printed], abs=6e-5)
    (rate,) = re.findall(r"BD-rate of the new ladder against the fixed one: ([-+][\d.]+ %)", result.stdout)
    assert f"(BD-rate {rate})" in answer, "the page and the command say the same"
    assert re.findall("<dt>([^<]*)</dt>", answer)[0] == "bit rate", "first what the ladder saves"
    assert script.read_text().splitlines()[-1] in answer
    assert rest.count('class="ring"') == len(rows) + 1, "each rung and the legend"
    trials = rest.partition("<summary>All trials")[2]
    assert "<details" in rest
    assert len(re.findall(r"\d+×\d+</span>", trials)) > len(rows)
    assert f"wrote {page}" in result.stderr
    lines = script.read_text().splitlines()
    assert lines[:2] == ["#!/bin/sh", "set -e"]
    commands = lines[lines.index("done") + 1 :]
    rungs = re.findall(r"(\d+x\d+)\W+(\d+)\b", result.stdout.split("the fixed ladder, as")[0])
    assert all(
        command.endswith(f"_{size}_preset-ultrafast_crf{crf}.mkv") for command, (size, crf) in zip(commands, rungs, strict=True)
    )
    assert all(command.startswith(f"ffmpeg -nostdin -i {clip} ") for command in commands)


def test_no_script_is_written_without_rungs(clip: str, tmp_path: Path) -> None:
    script = tmp_path / "rungs.sh"
    limits = ("--least-bitrate", "1", "--most-bitrate", "2", "--fixed", "none", "--trials", "2")
    result = vkssim("ladder", clip, *WORDS, *limits, "--commands", str(script))
    assert result.exit_code == 1
    assert f"note: {script} is not written, since there are no rungs" in result.stderr
    assert not script.exists()


def test_json_and_a_target_that_no_rung_meets(clip: str) -> None:
    words = ("--target", "float_ssim=0.999", "--most-bitrate", "300", "--fixed", "none", "--json")
    result = vkssim("ladder", clip, *WORDS, *words)
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert not answer["choice"]["meets"]
    assert all(one["trial"]["kbps"] <= 300 for one in answer["choice"]["rungs"])
    assert "meets the targets" in result.stderr
    result = vkssim("ladder", clip, "--heights", "big", "--encoder", "libx264")
    assert result.exit_code == 2
    assert "--heights 'big' is not of the form" in result.stderr
