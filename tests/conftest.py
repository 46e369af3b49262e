"""Pins the tests to one device and gives them a cache of their own, with the kernels that earlier runs compiled; prints the
largest differences at the end, also those of pytest-xdist's workers.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from vkssim.backends.sessions import close_sessions
from vkssim.frames.decode.hardware import close_idle_decoders
from vkssim.host.device import Device
from vkssim.host.devices import DEVICE_VARIABLE
from vkssim.host.errors import DeviceError
from vkssim.host.instance import Instance, shared_instance, shared_instances
from vkssim.host.pipelines import PipelineBuilder
from vkssim.metrics.dispatches import KernelShape
from vkssim.shaders import load_module
from vkssim.shaders.interface import Precision, Shape

from .support import differences
from .support.children import end_resident, start_resident
from .support.commands import end_processes, usual_signals
from .support.devices.compiled import keep_kernels, opened_device, restore_kernels, shared, unshared

SOFTWARE_DEVICE = "llvmpipe"

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it

# Before anything opens a device: lavapipe, so that the numbers are the same everywhere, unless the caller names another.
# A machine without it fails: a test that skips itself proves nothing.
os.environ[DEVICE_VARIABLE] = os.environ.get("VKSSIM_TEST_DEVICE") or SOFTWARE_DEVICE
_cache: tempfile.TemporaryDirectory[str] | None = None
if "PYTEST_XDIST_WORKER" not in os.environ:  # the workers inherit it: what one of them compiles no other one compiles again
    _cache = tempfile.TemporaryDirectory(prefix="vkssim-tests-", ignore_cleanup_errors=True)  # drivers may still write to it
    restore_kernels(Path(_cache.name))
    os.environ["XDG_CACHE_HOME"] = _cache.name
    os.environ["XDG_STATE_HOME"] = os.path.join(_cache.name, "state")
    os.environ["XDG_CONFIG_HOME"] = os.path.join(_cache.name, "config")  # Matplotlib warns of a home that it cannot use
# Without bytecode on disk each worker rewrites the assertions of all tests, and each child process compiles the whole package.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of NumPy in workers and child processes, which spin before they sleep
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("LP_NUM_THREADS", "1")  # lavapipe's threads: the cores are taken by workers


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("numprocesses", None):  # else its workers, which ignore the same, run the tests
        usual_signals()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, for there is none, nor later among all that was made meanwhile.

    Each full collection of garbage would go through all modules, PyTorch's among them. The child that encodes is forked while
    no test has changed anything.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if not session.config.getoption("numprocesses", None):
            start_resident()


def pytest_unconfigure() -> None:
    if _cache is not None:
        keep_kernels(Path(_cache.name))
        _cache.cleanup()


def pytest_sessionfinish(session: pytest.Session) -> None:
    end_resident()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["differences"] = differences.largest()


SAME_KERNELS = frozenset(
    f"tests/{name}.py"
    for name in (
        "maps/test_mapper",
        "metrics/test_integer_adm",
        "metrics/test_integer_vif",
        "metrics/test_plane_metrics",
        "metrics/test_vmaf",
        "metrics/test_vmaf_v1",
        "shaders/test_adm",
        "shaders/test_speed",
        "shaders/test_vif",
        "shaders/test_windows",
        "test_arrays",
        "test_bench",
        "test_docs",
        "test_docstrings",
        "test_drop_in",
        "test_dump_frame",
        "test_golden",
        "test_libvmaf",
        "test_precision",
        "test_properties",
        "test_same_bits",
    )
)
"""Files that take most of their time to compile the kernels of all metrics: in one worker they compile them once."""

SAME_COMPILER = frozenset(
    f"tests/{name}.py" for name in ("test_float_range", "torch/test_compile", "torch/test_second", "torch/test_transforms")
)
"""Files that use `torch.compile`, whose first use in a process takes seconds, or import it by derivatives of `torch.func`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let workers begin with the files of SAME_KERNELS, which take one of them longer than all other files do."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.nodeid.partition("::")[0] not in SAME_KERNELS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the files of SAME_KERNELS to one worker, and those of SAME_COMPILER to one, with `--dist loadfile`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # the tests run without it too

    class KernelsOnce(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            if file in SAME_COMPILER:
                return "PyTorch's compiler"
            return "the kernels of all metrics" if file in SAME_KERNELS else file

    return KernelsOnce(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    differences.add(getattr(node, "workeroutput", {}).get("differences", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = list(differences.summary())
    if lines:
        terminalreporter.section("largest differences")
        for line in lines:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def instance() -> Instance:
    try:
        return shared_instance()
    except DeviceError as error:
        pytest.fail(f"the tests need Vulkan: {error}", pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def memory_returned() -> Iterator[None]:
    """Give memory that a module has freed back to the system: a fork copies the tables of all pages that a process has."""
    yield
    if _trim is not None:
        _trim(0)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """End what a test has started, and close what it scored with: another test may count, patch or break it.

    SVT-AV1 gives the thread that encodes, and with it all threads that it starts later, the highest priority in real time if it
    runs as root: nothing else runs on the machine then. Under the validation layer a test that draws a message fails, whoever
    else passed over it.
    """
    yield
    end_processes()
    close_sessions()
    close_idle_decoders()
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    for instance in shared_instances.values():
        instance.check()


@pytest.fixture(scope="session")
def device(instance: Instance) -> Iterator[Device]:
    """Return the device that all tests run on. Its absence is a failure, never a reason to skip."""
    with opened_device(instance) as opened:
        yield opened


@pytest.fixture(scope="session")
def pipelines(device: Device) -> Iterator[PipelineBuilder]:
    """Kernels of that device, which are compiled once."""
    with ExitStack() as stack:
        yield PipelineBuilder(device, stack, load_module)


@pytest.fixture(scope="module")
def shared_device(device: Device, pipelines: PipelineBuilder) -> Iterator[None]:
    """Run the tests of a module that choose no device on the one that all share, with kernels compiled once."""
    with shared(device, pipelines):
        yield


@pytest.fixture
def own_devices() -> Iterator[None]:
    """In a module with `shared_device`, what this test opens runs on devices of its own: for threads."""
    with unshared():
        yield


def _shape(device: Device, shape: Shape, precision: Precision) -> KernelShape:
    return replace(KernelShape.for_device(device.info, shape), precision=precision)


@pytest.fixture(params=Shape, ids=lambda shape: shape.value)
def kernel_shape(request: pytest.FixtureRequest, device: Device) -> KernelShape:
    """Both shapes of the kernels, whichever of them the device would be given: each has to be right everywhere."""
    return _shape(device, request.param, Precision.EXACT)


@pytest.fixture(params=list(product(Shape, Precision)), ids=lambda it: f"{it[0].value}-{it[1].value}")
def kernel_build(request: pytest.FixtureRequest, device: Device) -> KernelShape:
    """Both shapes and both precisions, for the kernels that have two builds."""
    return _shape(device, *request.param)
