"""The pipeline cache on disk: damaged files, on a real device."""

from __future__ import annotations

import functools
from contextlib import ExitStack

from vkssim.host.device import Device
from vkssim.host.devices import choose_device, list_devices
from vkssim.host.instance import shared_instance
from vkssim.host.pipelines import PipelineBuilder, PipelineCache, unpacked
from vkssim.host.plan import Kernel
from vkssim.shaders import load_module

from .harness import SCRATCH, Choices

FOLDER = SCRATCH / "pipelines"
KERNEL = Kernel("ingest.staged", ((0, 64), (1, 1)))


@functools.cache
def _device() -> Device:
    return Device(choose_device(list_devices(shared_instance())))


@functools.cache
def _whole() -> tuple[str, bytes]:
    """The name and the content of a file that vkssim wrote itself."""
    with ExitStack() as stack:
        PipelineBuilder(_device(), stack, load_module, FOLDER).build((KERNEL,))
    (file,) = FOLDER.iterdir()
    return file.name, file.read_bytes()


def pipeline_cache(data: bytes) -> None:
    """Open a cache on a file of those bytes, or on a real one with those bytes somewhere in it; save it again."""
    name, whole = _whole()
    choices = Choices(data)
    place = choices.pick([None, *range(len(whole))])
    content = choices.rest() if place is None else whole[:place] + choices.rest() + whole[place + len(choices.rest()) :]
    (FOLDER / name).write_bytes(content)
    assert unpacked(content) in (b"", unpacked(whole)), "only what was written whole reaches a driver"
    with ExitStack() as stack:
        PipelineCache(_device(), stack, FOLDER).save()
