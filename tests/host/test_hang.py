"""A dispatch that never ends: the process hears of it in time, leaves the device alone, and ends."""

from __future__ import annotations

import pytest

from vkssim.host.waiting import TIMEOUT_VARIABLE

from ..support.commands import python_process, run_program

ENDLESS = """
#version 450
layout(local_size_x = 16) in;
layout(binding = 0) buffer Source { uint source[]; };
layout(binding = 1) buffer Target { uint target[]; };
void main() {
    while (source[0] == 0) atomicAdd(target[0], 1u);
}
"""
# Mesa's compiler ends any loop after 65535 rounds; so many workgroups of it take for ever.
RUN = """
import sys
from pathlib import Path
from vkssim.errors import DeviceError, exit_code
from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.executor import Executor
from vkssim.host.instance import shared_instance
from vkssim.host.plan import BufferSpec, Dispatch, Kernel, Plan, Role

buffers = BufferSpec("in", Role.INPUT, 64), BufferSpec("out", Role.OUTPUT, 64)
endless = Dispatch("endless", Kernel("endless"), ("in",), ("out",), b"", (65535, 65535))
code = Path(sys.argv[1]).read_bytes()
try:
    with (
        Device(choose_device(list_devices(shared_instance()))) as device,
        Executor(device, Plan(buffers, ((endless,),)), lambda _: code) as executor,
    ):
        for slot in executor.slots:
            slot.inputs["in"][:] = 0
            executor.submit(slot, 1)
        print("submitted", flush=True)
        executor.wait(executor.slots[0])
except DeviceError as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    sys.exit(exit_code(error))
"""


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("endless")
    (folder / "endless.comp").write_text(ENDLESS)
    module = folder / "endless.spv"
    words = ("-V", "--target-env", "vulkan1.1", "-o", str(module), str(folder / "endless.comp"))
    run_program("glslangValidator", *words, check=True)
    return str(module)


def test_a_hung_dispatch_ends_in_an_error(endless: str) -> None:
    """The process ends by itself, though the driver's threads are still at it. A GPU's driver may give up on it before."""
    process = python_process("-c", RUN, endless, environment={TIMEOUT_VARIABLE: "1"})
    assert process.returncode == 3, process.stderr
    first, error = process.stdout.decode().splitlines()
    assert first == "submitted"
    if not error.startswith("DeviceLostError"):
        assert error.startswith("DeviceTimeoutError: "), error
        for words in ("did not finish 1 frame in 1 s", "VKSSIM_TIMEOUT=SECONDS", "choose another device"):
            assert words in error
    assert process.stderr == b""
