"""What a run opens, and what the next run in the process finds open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkssim
from vkssim.backends import open as opening
from vkssim.backends.sessions import close_sessions
from vkssim.backends.vulkan import VulkanBackend
from vkssim.errors import InputError, SmallerBatchWarning
from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.report.results import ScoreReport

from ..support.clips import write, y4m_bytes
from ..support.devices.faults import RESULTS, Fault, layer
from ..support.pictures import clip

FEATURE = "float_psnr"  # whose kernel compiles soonest
SSIM = "float_ssim=scale=1:window=uniform8"
LUMA = clip(8)


@pytest.fixture
def paths(tmp_path: Path) -> tuple[str, str]:
    first, second = (write(tmp_path / f"{shift}.y4m", y4m_bytes(np.roll(LUMA, shift, axis=2))) for shift in (0, 1))
    return first, second


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many devices were opened, kernels compiled and backends made since the test began."""
    counted: Counter[str] = Counter()

    def count(kind: type[Any], method: str, name: str) -> None:
        original: Callable[..., Any] = getattr(kind, method)

        def noted(*arguments: Any, **options: Any) -> Any:
            counted[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(kind, method, noted)

    close_sessions()
    count(Device, "__init__", "devices")
    count(PipelineBuilder, "_compile", "kernels")
    count(VulkanBackend, "__init__", "backends")
    return counted


def _score(paths: tuple[str, str], **options: Any) -> ScoreReport:
    return vkssim.score_files(*paths, **{"features": [FEATURE], **options})


def test_calls_with_the_same_format_share_a_backend(paths: tuple[str, str], counts: Counter[str]) -> None:
    first = _score(paths)
    counts.clear()
    second = _score(paths)
    assert [outcome.scores().frames for outcome in vkssim.score_many([paths, paths], features=[FEATURE])] == [first.frames] * 2
    assert not counts
    assert first.frames == second.frames


def test_a_report_does_not_depend_on_the_calls_before_it(paths: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "software_warnings", lambda *_: (SmallerBatchWarning("batches are small"),))
    assert [_score(paths).warnings for _ in range(2)] == [["batches are small"]] * 2
    reports = [outcome.scores() for outcome in vkssim.score_many([paths, paths], features=[FEATURE])]
    warnings = sorted(report.warnings for report in reports)  # two pairs in step: either may begin first
    assert warnings == [[], ["batches are small"]], "once for each run of the engine"


def test_a_process_opens_a_device_once(paths: tuple[str, str], counts: Counter[str], tmp_path: Path) -> None:
    """Whatever the size of the frames, the metrics and the number of slots; it compiles each kernel once, too."""
    _score(paths, features=[SSIM])
    _score(paths)
    compiled = counts["kernels"]
    larger = [write(tmp_path / f"{seed}.y4m", y4m_bytes(clip(2, height=200, width=240, seed=seed))) for seed in (0, 1)]
    _score((larger[0], larger[1]), features=[SSIM])
    in_step = [(paths[0], path) for path in (*paths, paths[1])]
    for outcome in vkssim.score_many(in_step, features=[SSIM, FEATURE]):
        outcome.scores()
    first, second = clip(2, 40, 52)
    vkssim.ssim(first, second, window="uniform8")
    with vkssim.Scorer(64, 48, bits=8, features=[SSIM]) as scorer:
        scorer.feed(*clip(2, 48, 64))
    assert (counts["devices"], counts["kernels"]) == (1, compiled)
    counts.clear()
    _score(paths, features=[SSIM])
    _score((larger[0], larger[1]), features=[SSIM])
    assert not counts, "backends of both sizes are still there"


@pytest.mark.parametrize("name", ["missing.y4m", "larger.y4m"])
def test_a_pair_that_fails_leaves_it_open(paths: tuple[str, str], counts: Counter[str], tmp_path: Path, name: str) -> None:
    write(tmp_path / "larger.y4m", y4m_bytes(clip(2, width=80)))
    first = _score(paths)
    counts.clear()
    with pytest.raises(InputError):
        _score((paths[0], str(tmp_path / name)))
    assert _score(paths).frames == first.frames
    assert not counts


def test_a_device_that_was_lost_is_not_used_again(paths: tuple[str, str], counts: Counter[str]) -> None:
    with layer(Fault("vkWaitForFences", 0, RESULTS["DEVICE_LOST"])) as made:
        first = _score(paths)
        assert any("was lost" in warning for warning in first.warnings)
        assert counts["devices"] == 2
        second = _score(paths)
        assert counts["devices"] == 2
    assert (made.injected, made.left) == (1, {})
    assert first.frames == second.frames
    assert not any("was lost" in warning for warning in second.warnings)


def test_a_run_that_its_caller_leaves_waits_for_its_batches(paths: tuple[str, str], counts: Counter[str]) -> None:
    """They belong to the next run then."""
    expected = _score(paths)
    outcomes = vkssim.score_many([paths, (paths[1], paths[0])], features=[FEATURE])
    next(outcomes)
    outcomes.close()
    assert _score(paths).frames == expected.frames
    assert (counts["devices"], counts["backends"]) == (1, 1)
