"""The suite itself: it fails if it cannot prove anything, and its comparisons can fail."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from vkssim.host.instance import VALIDATION_VARIABLE

from .support import differences
from .support.commands import python_process
from .support.differences import check_array, check_number, check_scores
from .support.tolerances import Tolerance

ROOT = Path(__file__).parent.parent
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
NARROW = Tolerance("of these tests", 0.01, 0.0, "made up")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave these comparisons out of the measurements."""
    monkeypatch.setattr(differences, "_LARGEST", {})


def _pytest(*words: str, environment: dict[str, str]) -> tuple[int, str]:
    """Run tests as a process of their own, and return its exit code and what it says."""
    process = python_process(*words, environment={"PYTHONPATH": str(ROOT), **environment}, cwd=ROOT)
    return process.returncode, process.stdout.decode()


def test_a_program_that_does_not_end_is_killed_at_its_limit() -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        python_process("-c", "import time; time.sleep(600)", time_limit_s=0.1)


@pytest.mark.parametrize(
    "environment",
    [{"VK_DRIVER_FILES": "/absent.json", "VK_ICD_FILENAMES": "/absent.json"}, {"VKSSIM_TEST_DEVICE": "voodoo"}],
    ids=["no driver", "no such device"],
)
def test_a_missing_driver_fails_the_tests(environment: dict[str, str]) -> None:
    """It never skips them."""
    code, said = _pytest(
        *PYTEST, f"--rootdir={ROOT}", str(ROOT / "tests" / "host" / "test_executor.py"), environment=environment
    )
    assert (code, "the tests need" in said, "passed" in said, "skipped" in said) == (1, True, False, False), said


LEAK = """
from vkssim.host.api import vk
from vkssim.host.device import Device

def test_leak(device):
    with Device(device.info) as other:
        info = vk.VkBufferCreateInfo(size=64, usage=vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
        vk.vkCreateBuffer(other.handle, info, None)

def test_other(device):
    pass
"""


def test_a_message_of_the_validation_layer_fails_its_test(tmp_path: Path) -> None:
    """And that one alone."""
    (tmp_path / "test_leak.py").write_text(LEAK)
    words = (*PYTEST, "-p", "tests.conftest", f"--rootdir={tmp_path}", str(tmp_path))
    code, said = _pytest(*words, environment={VALIDATION_VARIABLE: str(tmp_path / "messages")})
    assert code != 0
    assert "ERROR at teardown of test_leak" in said, said
    assert "2 passed, 1 error" in said


@pytest.mark.parametrize(
    ("got", "expected", "message"),
    [
        (0.5, 0.52, "here: got 0.5, expected 0.52, delta 0.02 > 0.01"),
        (math.inf, 1.0, "here"),
        *((*pair, "one of them is missing") for pair in ((None, 0.5), (math.nan, 0.5), (0.5, None), (0.5, math.nan))),
    ],
)
def test_numbers_that_differ(got: float | None, expected: float | None, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_number(NARROW, "", "here", got, expected)
    for alike in ((math.inf, math.inf), (None, math.nan), (0.5, 0.509)):
        check_number(NARROW, "", "here", *alike)


@pytest.mark.parametrize("wrong", [7.0, np.nan])
def test_what_differs_is_named(wrong: float) -> None:
    with pytest.raises(AssertionError, match=r"metrics differ: \['b', 'c'\]"):
        check_scores(NARROW, "here", {"a": 1.0, "b": 1.0}, {"a": 1.0, "c": 1.0})
    got = np.zeros((3, 4))
    got[0, 1], got[2, 3] = 0.02, wrong
    with pytest.raises(AssertionError, match=rf"at \(2, 3\) got .*{wrong}.*expected .*0\.0.*2 of 12 differ"):
        check_array(NARROW, "here", got, np.zeros((3, 4)))
    with pytest.raises(AssertionError, match="shape"):
        check_array(NARROW, "here", got, got[:2])
