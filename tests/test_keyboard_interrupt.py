"""Ctrl-C in a program of Python: every call raises a KeyboardInterrupt, and those of files keep the scores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import vkssim
from vkssim.errors import InterruptedRunError, exit_code

from .frames.reading import describe
from .search.clips import source
from .support.clips import raw_bytes, write
from .support.pictures import clip

FEW = 12
IMAGES = clip(2)
CPU: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}
FILES: dict[str, Any] = {"raw": describe(clip(1)), **CPU}


def _clips_in(folder: Path) -> tuple[str, str]:
    luma = clip(FEW)
    return write(folder / "ref.yuv", raw_bytes(luma)), write(folder / "dis.yuv", raw_bytes(luma // 16 * 16))


def _score_frames(_folder: Path) -> None:
    with vkssim.Scorer(32, 24, bits=8, **CPU) as scorer:
        list(scorer.score(zip(clip(FEW), clip(FEW), strict=True)))


CALLS: dict[str, Callable[[Path], object]] = {
    "score_files": lambda folder: vkssim.score_files(*_clips_in(folder), **FILES),
    "score_many": lambda folder: list(vkssim.score_many([_clips_in(folder)], **FILES)),
    "ssim": lambda _folder: vkssim.ssim(*IMAGES, backend="cpu", scale=1),
    "ssim_and_grad": lambda _folder: vkssim.ssim_and_grad(*IMAGES, backend="cpu"),
    "Scorer": _score_frames,
    "search_setting": lambda folder: list(vkssim.search_setting(source(folder / "clip.mkv"), targets="float_ssim=0.9", **CPU)),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_loop_that_goes_on_after_errors_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def stop(*_arguments: Any, **_options: Any) -> Any:
        raise KeyboardInterrupt

    for computation in ("vkssim.backends.cpu.CpuBackend.collect", "vkssim.loss.reference.value_and_gradient"):
        monkeypatch.setattr(computation, stop)
    with pytest.raises(KeyboardInterrupt), suppress(vkssim.VkssimError):
        CALLS[call](tmp_path)


def test_the_scores_of_a_file_are_kept(tmp_path: Path) -> None:
    """The error has them, and the next call with `resume` goes on after them."""
    clips, results = _clips_in(tmp_path), tmp_path / "scores"

    def stop(done: int, _total: int | None) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"stopped after 5 frames; .*; `resume` continues") as raised:
        vkssim.score_files(*clips, resume=results, on_frames=lambda _frames: None, progress=stop, **FILES)
    assert len(raised.value.report.frames) == 5
    assert exit_code(raised.value) == exit_code(KeyboardInterrupt()) == 130
    report = vkssim.score_files(*clips, resume=results, **FILES)
    assert (len(report.frames), report.resumed) == (FEW, 4)
