"""One device for many tests, on which each kernel is compiled once: lavapipe takes 0.1 s to 0.3 s for a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from vkssim.backends import vulkan
from vkssim.host import executor
from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder
from vkssim.shaders import load_module


@contextmanager
def kept_pipelines(device: Device) -> Iterator[PipelineBuilder]:
    """Return a builder whose pipelines live until the end of the `with`."""
    with ExitStack() as stack:
        yield PipelineBuilder(device, stack, load_module)


@contextmanager
def shared(device: Device, kept: PipelineBuilder) -> Iterator[None]:
    """Have backends that are opened on no device in particular run on `device`, and whatever runs on it use what is kept.

    It is for tests of numbers. Those of opening, of closing and of threads open devices of their own.
    """
    open_device = vulkan.open_device

    def builder(
        asked: Device, stack: ExitStack, load: Callable[[str], bytes], cache_folder: Path | None = None
    ) -> PipelineBuilder:
        if asked is device and load is load_module:
            return kept
        return PipelineBuilder(asked, stack, load, cache_folder)

    def opened(stack: ExitStack, selector: str | int | None) -> Device:
        return device if selector is None else open_device(stack, selector)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor, "PipelineBuilder", builder)
        patch.setattr(vulkan, "open_device", opened)
        yield
