"""The film grain of AV1, which decoders synthesise: with it, and without."""

from __future__ import annotations

import json
from pathlib import Path

import av
import numpy as np
import pytest

from vkssim.engine.options import ScoreOptions
from vkssim.errors import InputError
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.hardware import HardwareDecoder
from vkssim.frames.open import open_file
from vkssim.frames.options import RawDescription
from vkssim.ladder.manifest import read_manifest
from vkssim.storage.inputs import Opened
from vkssim.utils.av_frames import plane_of

from ..support.clips import write
from ..support.commands import TINY, refuse, succeed
from ..support.pictures import Picture
from .encoding import encode_frames, moving_frames
from .reading import read

IN_THE_SCORES = "its film grain, which the decoder synthesises, is in the scores"
LEFT_OUT = "decoded without its film grain"
FRAMES = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of grain.mp4 and grain.avif, and of plain.mp4 and plain.avif, which have none."""
    made = tmp_path_factory.mktemp("grain")
    for name, grain in (("grain", 40), ("plain", 0)):
        params = f"film-grain={grain}:film-grain-denoise=0:lp=1"
        options = {"preset": "12", "crf": "20", "svtav1-params": params}
        for ending, count in (("mp4", FRAMES), ("avif", 1)):
            encode_frames(made / f"{name}.{ending}", moving_frames(count, 144, 176), "libsvtav1", options=options)
    return made


def _decoded(path: Path, *, adds_grain: bool) -> tuple[Picture, tuple[str, ...]]:
    with open_file(str(path), RawDescription(), adds_grain=adds_grain) as source:
        return read(source), source.info.notes


def _luma(path: Path, options: dict[str, str]) -> Picture:
    with av.open(str(path)) as container:
        container.streams.video[0].codec_context.options = options
        return np.stack([plane_of(frame, 0) for frame in container.decode(video=0)])


@pytest.mark.parametrize("threads", [False, True])
def test_grain_is_added_or_left_out(folder: Path, threads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkssim.frames.decode.clip_decoder.threads_help", lambda: threads)
    with_grain, notes = _decoded(folder / "grain.mp4", adds_grain=True)
    assert [note.startswith(IN_THE_SCORES) for note in notes] == [True]
    without, notes = _decoded(folder / "grain.mp4", adds_grain=False)
    assert notes == (LEFT_OUT,)
    assert len(with_grain) == len(without) == FRAMES
    assert all(np.abs(one - other.astype(int)).mean() > 1 for one, other in zip(with_grain, without, strict=True))
    # libdav1d's own option says the same
    np.testing.assert_array_equal(without, _luma(folder / "grain.mp4", {"filmgrain": "0"}))
    np.testing.assert_array_equal(with_grain, _luma(folder / "grain.mp4", {"filmgrain": "1"}))


@pytest.mark.parametrize("adds_grain", [False, True])
def test_clips_without_grain_are_not_noted(folder: Path, adds_grain: bool) -> None:
    frames, notes = _decoded(folder / "plain.mp4", adds_grain=adds_grain)
    assert notes == ()
    np.testing.assert_array_equal(frames, _luma(folder / "plain.mp4", {}))


@pytest.mark.parametrize(("adds_grain", "note"), [(True, IN_THE_SCORES), (False, LEFT_OUT)])
def test_a_header_in_the_first_packet_alone_counts(folder: Path, adds_grain: bool, note: str) -> None:
    """AVIF has no header in the description of its stream."""
    assert _decoded(folder / "grain.avif", adds_grain=adds_grain)[1] == (note,)
    assert _decoded(folder / "plain.avif", adds_grain=adds_grain)[1] == ()


def test_grain_that_hardware_would_add_is_left_out_on_the_cpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if this decoder has decoded the clip before, with its grain; a clip without grain is left to it."""
    started: list[bool] = []

    def start(clip, facts, first, hardware, begin, early=None):  # type: ignore[no-untyped-def]
        started.append(clip.adds_grain)
        clip.start(threads=False, begin=begin)
        return clip.decoder.next(), None

    monkeypatch.setattr("vkssim.frames.decode.choice.start_by_hardware", start)
    monkeypatch.setattr("vkssim.frames.decode.choice.start_early", lambda *_: None)
    monkeypatch.setattr(HardwareDecoder, "refuses", lambda *_: None)
    hardware = HardwareDecoder("cuda", required=False)
    path = str(folder / "grain.mp4")
    for _ in range(2):
        with ContainerFile(path, None, hardware, Opened.now(path)) as source:
            assert source.clip_facts().decoder == "av1 (cuda)"
    assert started == [True, True]
    with ContainerFile(path, None, hardware, Opened.now(path), adds_grain=False) as source:
        facts = source.clip_facts()
        assert (facts.decoder, LEFT_OUT in source.info.notes) == ("libdav1d", True)
        assert facts.decoder_reason == "cuda: it has film grain, which only the CPU leaves out, and `film_grain=off` is given"
    with pytest.raises(InputError, match=r"the cuda decoder cannot decode it: it has film grain, .* `decode=cpu` decodes it"):
        ContainerFile(path, None, HardwareDecoder("cuda"), Opened.now(path), adds_grain=False)
    assert started == [True, True]
    path = str(folder / "plain.mp4")
    with ContainerFile(path, None, hardware, Opened.now(path), adds_grain=False) as source:
        assert source.clip_facts().decoder == "av1 (cuda)"


def test_the_command_line_and_the_report(folder: Path, tmp_path: Path) -> None:
    plain, grain = str(folder / "plain.mp4"), str(folder / "grain.mp4")
    scores = {}
    for value, note in (("on", IN_THE_SCORES), ("off", LEFT_OUT)):
        out = tmp_path / f"{value}.json"
        result = succeed("score", "-r", plain, "-d", grain, *TINY, "--film-grain", value, "-o", str(out), "--json")
        assert f"note: {grain}: {note}" in result.stderr
        report = json.loads(out.read_text())
        assert report["scoring"]["pictures"]["film_grain"] == value
        scores[value] = report["pooled_metrics"]["float_ssim"]["mean"]
    assert scores["on"] < scores["off"]
    warned = succeed("compare", str(tmp_path / "off.json"), str(tmp_path / "on.json")).stderr
    assert "film grain" in warned
    refuse("--film-grain", "score", "-r", plain, "-d", grain, *TINY, "--film-grain", "much")


def test_rows_of_a_manifest_set_it(folder: Path, tmp_path: Path) -> None:
    pair = f"{folder}/plain.mp4,{folder}/grain.mp4"
    text = f"reference,distorted,film_grain\n{pair},off\n{pair},\n"
    first, second = read_manifest(write(tmp_path / "pairs.csv", text.encode()))
    options = ScoreOptions(("float_ssim",))
    assert [pair.options(options).pictures.adds_grain for pair in (first, second)] == [False, True]
    with pytest.raises(InputError, match="`film_grain` is 'no'; it must be on or off"):
        read_manifest(write(tmp_path / "wrong.csv", text.replace("off", "no").encode()))
