"""tools/compare_decoders: it notices a decoder that gives other frames, and one that says nothing of damage."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from click.testing import CliRunner, Result

import vkssim
from vkssim.errors import InputError

from .frames.encoding import noise_planes, video_frame
from .support import compared_scores, decoded_planes
from .support.coded_clips import CLIPS
from .support.compared_scores import REFUSED, Outcome, differ, verdict

TOOL = Path(__file__).parents[1] / "tools" / "compare_decoders"
SOUND, DAMAGED = "h264_pyramid.mkv", "h264_pyramid_flipped.mkv"
SILENT = "vp9_flipped.webm"  # FFmpeg says nothing of its damage

Change = Callable[[Any], Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the clips."""
    folder = tmp_path_factory.mktemp("clips")
    for name in (SOUND, DAMAGED, SILENT):
        next(clip for clip in CLIPS if clip.name == name).write(folder)
    return folder


@pytest.fixture(scope="module")
def tool() -> Any:
    loader = SourceFileLoader("compare_decoders", str(TOOL))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _run(tool: Any, folder: Path, *words: str) -> Result:
    return CliRunner().invoke(tool.main, ["--folder", str(folder), "--backend", "cpu", *words])


# -- scores -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def hardware(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Stand in for a vkssim that decodes on a device, and whose report is changed by a function."""
    score_files: Any = vkssim.score_files
    options = {"backend": "cpu", "features": "float_ssim"}

    def use(change: Change) -> None:
        def stand_in(reference: Path, distorted: Path, *, decode: str, **words: Any) -> Any:
            report = score_files(reference, distorted, **{**words, **options})
            return report if decode == "cpu" else change(_by("device", report))

        monkeypatch.setattr(compared_scores, "score_files", stand_in)

    return use


def _by(decoder: str, report: Any) -> Any:
    scoring = replace(report.scoring, distorted=replace(report.scoring.distorted, decoder=decoder))
    return replace(report, scoring=scoring)


def _one_bit(report: Any) -> Any:
    report.frames[9].metrics["float_ssim"] = float(np.nextafter(report.frames[9].metrics["float_ssim"], 0))
    return report


def test_equal_scores(tool: Any, folder: Path, hardware: Callable[[Change], None], tmp_path: Path) -> None:
    hardware(lambda report: report)
    result = _run(tool, folder, "--clip", "h264_pyramid.mkv", "--json", str(tmp_path / "table.json"))
    assert result.exit_code == 0, result.output
    assert "1 of 1 clips were decoded in hardware" in result.stdout
    (row,) = json.loads((tmp_path / "table.json").read_text())["clips"]
    assert (row["decoder"], row["frames"], row["equal"], row["wrong"]) == ("device", [48, 48], True, None)


def test_a_score_that_differs_in_its_last_bit(tool: Any, folder: Path, hardware: Callable[[Change], None]) -> None:
    hardware(_one_bit)
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 1
    assert f"{SOUND}: scores differ" in result.stderr
    assert "from 9, by up to 1" in result.stdout


def test_an_error_of_one_alone(tool: Any, folder: Path, hardware: Callable[[Change], None]) -> None:
    def fail(report: Any) -> Any:
        error = InputError("the device is gone")
        error.report = report
        raise error

    hardware(fail)
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 1
    assert f"{SOUND}: only one of the two fails" in result.stderr
    assert "error: the device is gone" in result.stdout


def test_nothing_is_proved_where_the_cpu_decodes_everything(
    tool: Any, folder: Path, hardware: Callable[[Change], None]
) -> None:
    hardware(lambda report: _by("h264", report))
    result = _run(tool, folder, "--clip", SOUND)
    assert result.exit_code == 2
    assert "nothing was compared" in result.stderr


def test_what_counts_as_a_difference() -> None:
    nan = float("nan")
    assert differ({0: {"a": nan, "b": None}}, {0: {"a": nan, "b": None}}).equal
    assert differ({0: {"a": 0.0}}, {0: {"a": -0.0}}).first == 0
    assert differ({0: {"a": 0.5}, 1: {"a": 0.5}}, {0: {"a": 0.5}}).first == 1
    assert differ({0: {"a": 0.5}}, {0: {"a": None}}).first == 0
    assert differ({0: {"a": 0.5}, 1: {"a": 0.25}}, {0: {"a": 0.5}, 1: {"a": 0.5}}).greatest == 0.25


def test_damage_is_noticed_where_there_is_a_complaint_that_the_sound_clip_does_not_draw() -> None:
    cpu = Outcome({0: {"a": 0.5}}, [], "h264", 0)
    other = Outcome({0: {"a": 0.25}}, ["usual"], "device", 0)
    assert verdict(cpu, other, damaged=True, usual=["usual"]) == "damage is not noticed"
    assert verdict(cpu, other, damaged=True, usual=[]) is None
    assert verdict(cpu, other, damaged=False, usual=[]) == "scores differ"
    assert verdict(cpu, cpu, damaged=True, usual=[]) is None
    refused = Outcome({}, [f"error: CLIP: the cuda {REFUSED}: its frames are yuv422p"], "", 0)
    assert verdict(cpu, refused, damaged=False, usual=[]) is None
    assert verdict(cpu, replace(refused, complaints=["error: no"]), damaged=False, usual=[]) == "scores differ"


# -- decoders alone ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chroma", "bits", "on_device"),
    [
        ("420", 8, "nv12"),
        ("420", 10, "p010le"),
        ("420", 12, "p016le"),
        ("422", 8, "nv16"),
        ("422", 10, "p210le"),
        ("444", 8, "nv24"),
        ("444", 10, "yuv444p16le"),
    ],
)
def test_planes_of_a_device(chroma: str, bits: int, on_device: str) -> None:
    """Frames as devices have them hold the same planes: Cb and Cr interleaved, deep samples in the highest bits."""
    planes = noise_planes(62, 50, chroma, bits)
    luma, *colours = planes if bits == 8 else [plane << (16 - bits) for plane in planes]
    if on_device != "yuv444p16le":
        colours = [np.stack(colours, axis=-1).reshape(colours[0].shape[0], -1)]
    frame = video_frame(62, 50, on_device, [luma, *colours])
    for plane, expected in zip(decoded_planes.planes_of(frame, bits), planes, strict=True):
        np.testing.assert_array_equal(plane, expected)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Callable[[Change], None]:
    """Stand in for a device that gives frames of NV12, each of which is changed by a function; None leaves it out."""

    def use(change: Change) -> None:
        def frames(path: Path, kind: str) -> Iterator[Any]:
            with av.open(str(path)) as container:
                container.streams.video[0].thread_type = "NONE"
                for frame in container.decode(video=0):
                    changed = change(frame.reformat(format="nv12"))
                    if changed is not None:
                        yield changed

        monkeypatch.setattr(decoded_planes, "device_problem", lambda kind: None)
        monkeypatch.setattr(decoded_planes, "_device_frames", frames)

    return use


def _brighter(frame: Any) -> Any:
    if round(frame.time * 25) == 7:
        np.frombuffer(frame.planes[1], np.uint8)[5] ^= 2
    return frame


def test_one_sample_of_chroma_differs(tool: Any, folder: Path, device: Callable[[Change], None]) -> None:
    device(_brighter)
    result = _run(tool, folder, "--decoders-alone", "--clip", SOUND, "--clip", DAMAGED, "--clip", SILENT)
    assert result.exit_code == 1
    assert f"{SOUND}: frames differ" in result.stderr
    assert f"{SILENT}: damage is not noticed" in result.stderr
    assert f"{DAMAGED}: done" in result.stderr
    assert "frames differ: from 7, by up to 2" in result.stdout
    assert "warned of: from 7, by up to 2" in result.stdout


def test_a_frame_is_missing(tool: Any, folder: Path, device: Callable[[Change], None]) -> None:
    device(lambda frame: None if round(frame.time * 25) == 47 else frame)
    result = _run(tool, folder, "--decoders-alone", "--clip", SOUND)
    assert result.exit_code == 1
    assert "48 / 47" in result.stdout


def test_a_device_that_refuses_every_clip_proves_nothing(tool: Any, folder: Path, device: Callable[[Change], None]) -> None:
    def refuse(frame: Any) -> Any:
        raise RuntimeError("no such profile")

    device(refuse)
    result = _run(tool, folder, "--decoders-alone", "--clip", SOUND)
    assert result.exit_code == 2
    assert "refused: no such profile" in result.stdout
