"""Survey Vulkan: load the loader and each driver's library, and describe the devices.

`survey` is the work of a process of its own, which sends the fields of a `Survey`.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import DeviceError, NoLoaderError
from ..host.api import vk
from ..host.devices import DeviceInfo, DeviceKind, choose_device, list_devices
from ..host.errors import DOCTOR
from ..host.gpus import NAMED_FILES
from ..host.instance import shared_instance
from ..host.vectors import choose_width
from .driver_files import DriverFile
from .in_subprocess import Send, run_in_process

_LIBRARIES = {"win32": "vulkan-1.dll", "darwin": "libvulkan.dylib"}
_LIST_TIMEOUT_S = 20.0
_SURVEY_TIMEOUT_S = 60.0  # to load the drivers and to list their devices
_LOADER_NAMES = ("libvulkan.so", "libvulkan.1")


@dataclass
class Survey:
    """The result of a survey."""

    problems: dict[str, str | None] = field(default_factory=dict)
    """The message of the dynamic loader for each library; None for one that loads."""
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The libraries that a library lacks if it does not load."""
    has_loader: bool = False
    loader_problem: str | None = None
    """The reason why the Vulkan loader cannot be loaded."""
    loader_path: str | None = None
    loader_version: str | None = None
    devices: list[DeviceInfo] = field(default_factory=list)
    chosen: int | None = None
    """The index of the device that vkssim chooses."""
    failure: str | None = None
    """The reason why no device is chosen, or why the devices could not be listed."""
    doing: str = "the survey"
    """The last step."""

    @property
    def has_gpu(self) -> bool:
        """Return whether Vulkan lists a device that is no software."""
        return any(device.kind is not DeviceKind.CPU for device in self.devices)


def make_survey(files: Sequence[DriverFile]) -> Survey:
    """Return the survey of Vulkan with the drivers of these files, which the loader reads.

    If listing the devices ends the process, each driver is tried alone, so that `failure` names the one that fails.
    """
    used = [file for file in files if file.library is not None and file.left_out is None]
    result = Survey()
    libraries = tuple(dict.fromkeys(str(file.library) for file in used))
    end = run_in_process(survey, (libraries,), _SURVEY_TIMEOUT_S, partial(setattr, result))
    if end is not None:
        result.failure = f"{result.doing}: {end}"
        for file in used:
            alone = dict.fromkeys(NAMED_FILES, str(file.path))
            end = run_in_process(survey, ((),), _SURVEY_TIMEOUT_S, lambda *_: None, alone)
            if end is not None:
                result.failure += f"; with {file.path} alone: {end}"
    return result


def survey(send: Send, libraries: Sequence[str]) -> None:
    """Send the fields of a `Survey`, step by step, so that the last step is known if the process ends."""
    choose_width()
    problems, missing = {}, {}
    for library in libraries:
        send("doing", f"loading {library}")
        problems[library] = _load_problem(library)
        if problems[library] is not None:
            missing[library] = tuple(name for name, path in list_libraries(library).items() if path is None)
        send("problems", problems)
        send("missing", missing)
    send("doing", "loading the Vulkan loader")
    try:
        binding = vk.module
    except NoLoaderError as error:
        if isinstance(error.__cause__, ImportError):
            problem = "the Python package vulkan is not installed"
        else:
            problem = _load_problem(_LIBRARIES.get(sys.platform, "libvulkan.so.1")) or str(error.__cause__)
        send("loader_problem", problem)
        return
    send("has_loader", True)
    send("loader_path", _loader_path())
    send("loader_version", _loader_version(binding))
    send("doing", "listing the devices")
    try:
        devices = list_devices(shared_instance())
        send("devices", [replace(device, physical=None) for device in devices])  # a handle belongs to its process
        send("chosen", choose_device(devices).index)
    except DeviceError as error:
        send("failure", str(error).removesuffix(f". {DOCTOR}"))


def _load_problem(library: str) -> str | None:
    """Return the message of the dynamic loader for a library that it cannot load; None if it can.

    Functions that the library lacks do not count, as for the Vulkan loader: they are looked up when they are first called.
    """
    try:
        ctypes.CDLL(library, mode=getattr(os, "RTLD_LAZY", ctypes.DEFAULT_MODE))
    except OSError as error:
        return str(error) or f"{library} cannot be loaded"
    return None


def list_libraries(library: str) -> Mapping[str, str | None]:
    """Return the libraries that a library needs, and that these need, each with the path at which the dynamic loader finds it.

    The path is None if the loader finds none, which an error of loading says of the first such library alone. A library that is
    not found itself is the only entry. The loader of glibc lists them instead of starting a program, so no code of a library
    runs; other loaders ignore the request, and list none.
    """
    if not sys.platform.startswith("linux") or not sys.executable or set(library) & set(" :"):  # both separate libraries
        return {}
    environment = {**os.environ, "LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": library}
    with suppress(OSError, subprocess.TimeoutExpired):
        listed = subprocess.run(
            [sys.executable, "-c", ""], env=environment, capture_output=True, timeout=_LIST_TIMEOUT_S, check=False
        )
        if f"'{library}' from LD_PRELOAD cannot be preloaded (cannot open" in listed.stderr.decode(errors="replace"):
            return {library: None}
        lines = (line.strip().partition(" => ") for line in listed.stdout.decode(errors="replace").splitlines())
        return {name: None if path == "not found" else path.partition(" (")[0] for name, arrow, path in lines if arrow}
    return {}


def _loader_version(binding: Any) -> str | None:
    """Return the version of Vulkan that the loader implements; None for a loader of Vulkan 1.0, which does not report it."""
    with suppress(AttributeError, binding.VkError, binding.VkException):
        version = binding.vkEnumerateInstanceVersion()
        return f"{version >> 22}.{version >> 12 & 0x3FF}.{version & 0xFFF}"
    return None


def _loader_path() -> str | None:
    """Return the file of the loader that this process has loaded; None if the system does not list it."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
            name = line.partition("/")[2]
            if os.path.basename(name).startswith(_LOADER_NAMES):
                return f"/{name}"
    return None
