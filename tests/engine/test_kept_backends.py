"""What a run opens, and what the next run in the process finds open."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import vkssim
from vkssim.backends import shared as sharing
from vkssim.backends.base import Backend
from vkssim.backends.open import open_backend
from vkssim.backends.vulkan import VulkanBackend
from vkssim.engine import pools
from vkssim.errors import InputError, SmallerBatchWarning
from vkssim.host.pipelines import Pipeline, PipelineBuilder
from vkssim.host.plan import Kernel
from vkssim.report.results import ScoreReport

from ..support.clips import write, y4m_bytes
from ..support.faults import RESULTS, Fault, layer
from ..support.pictures import clip

FEATURE = "float_ssim=scale=1"
LUMA = clip(8)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    first, second = (write(tmp_path / f"{shift}.y4m", y4m_bytes(np.roll(LUMA, shift, axis=2))) for shift in (0, 1))
    return first, second


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Backend]:
    """The backends that were opened since the test began."""
    made: list[Backend] = []

    def note(*arguments: Any, **options: Any) -> Backend:
        made.append(open_backend(*arguments, **options))
        made[-1].warnings = (SmallerBatchWarning("batches are small"),)
        return made[-1]

    monkeypatch.setattr(sharing, "open_backend", note)
    return made


def _score(paths: tuple[str, str], **options: Any) -> ScoreReport:
    return vkssim.score_files(*paths, **{"features": [FEATURE], **options})


def test_calls_with_the_same_format_share_a_backend(paths: tuple[str, str], opened: list[Backend]) -> None:
    first, second = _score(paths), _score(paths)
    assert [outcome.scores().frames for outcome in vkssim.score_many([paths, paths], features=[FEATURE])] == [first.frames] * 2
    assert len(opened) == 1
    assert first.frames == second.frames
    assert first.warnings == second.warnings == ["batches are small"]  # a report does not depend on the calls before it


def test_frames_of_another_size_find_the_device_and_its_kernels(
    paths: tuple[str, str], opened: list[Backend], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _score(paths)
    compiled: list[str] = []
    compile_kernel = PipelineBuilder._compile

    def note(self: PipelineBuilder, kernel: Kernel, compilations: Any) -> Pipeline:
        compiled.append(kernel.module)
        return compile_kernel(self, kernel, compilations)

    monkeypatch.setattr(PipelineBuilder, "_compile", note)
    larger = [write(tmp_path / f"{seed}.y4m", y4m_bytes(clip(2, height=200, width=240, seed=seed))) for seed in (0, 1)]
    _score((larger[0], larger[1]))
    first, second = (cast(VulkanBackend, backend) for backend in opened)
    assert first.device is second.device
    assert compiled == []
    _score(paths, features=["float_psnr"])
    assert len(opened) == 3, "other metrics are another backend"
    assert set(compiled) == {"psnr.strip"}, "by the self-test as well, if no test of this process has compiled it"


@pytest.mark.parametrize("name", ["missing.y4m", "larger.y4m"])
def test_a_pair_that_fails_leaves_it_open(paths: tuple[str, str], opened: list[Backend], tmp_path: Path, name: str) -> None:
    write(tmp_path / "larger.y4m", y4m_bytes(clip(2, width=80)))
    first = _score(paths)
    with pytest.raises(InputError):
        _score((paths[0], str(tmp_path / name)))
    assert _score(paths).frames == first.frames
    assert len(opened) == 1


def test_a_device_that_was_lost_is_not_used_again(paths: tuple[str, str], opened: list[Backend]) -> None:
    with layer(Fault("vkWaitForFences", 0, RESULTS["DEVICE_LOST"])) as made:
        first = _score(paths)
        assert any("was lost" in warning for warning in first.warnings)
        second = _score(paths)
    assert (made.injected, made.left, len(opened)) == (1, {}, 3)  # one after the loss, one for the second call
    assert first.frames == second.frames
    assert not any("was lost" in warning for warning in second.warnings)


def test_a_run_that_its_caller_leaves_closes_it(paths: tuple[str, str], opened: list[Backend]) -> None:
    """Its batches may still be at work."""
    outcomes = vkssim.score_many([paths, (paths[1], paths[0])], features=[FEATURE])
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]
    assert pools.kept.take(("vulkan", None, 4, False)) is None
    _score(paths)
    assert len(opened) == 2
