"""Choose where workers run, and start them. Every device that scores clips is opened by a worker."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..backends.cpu import INFO
from ..backends.decoding import hardware_decoder, sessions
from ..backends.open import no_devices
from ..backends.open_device import info_of
from ..errors import OptionError
from ..frames.open import can_reopen, may_be_container
from ..host.devices import DeviceInfo
from ..report.backend_info import BackendInfo
from ..scoring.options import Clips, ScoreOptions, Selector
from ..utils.choices import ENGINES
from .devices import chosen_devices, single_device, spec_of
from .task import WorkerPool, WorkerSpec
from .threads import EnginesPool, LocalPool


@dataclass(frozen=True)
class WorkerOptions:
    """Choose where workers run.

    With the engine ``"local"`` they run on this machine, on `device` as in `score_files`. With ``"ray"`` they run on the
    cluster at `address`. Without an address that is the cluster that RAY_ADDRESS names, or the one that runs on this machine,
    or else a new one. `software` also uses nodes without a GPU, on Mesa's lavapipe. Raises OptionError for options that exclude
    each other.
    """

    engine: str = "local"
    backend: str = "vulkan"
    device: Selector = None
    address: str | None = None
    software: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise OptionError(f"engine is {self.engine!r}; {' or '.join(ENGINES)} is possible")
        if self.engine == "ray" and self.device is not None:
            raise OptionError(f"`device={self.device}` is for one machine; Ray gives each worker its GPU. Leave it out")
        if self.engine != "ray" and (self.address is not None or self.software):
            raise OptionError("`address` and `software` are for `engine=ray`")

    @property
    def several(self) -> list[DeviceInfo]:
        """Return the devices of this machine if several are named; see `chosen_devices`."""
        return chosen_devices(self.backend, self.device)

    def open(self, clips: Sequence[Clips], options: ScoreOptions, in_step: int = 1, profile: bool = False) -> WorkerPool:
        """Start the workers for clips; `in_step` pairs may share a reference. Raises DeviceError if there is no device.

        One GPU gets several workers if its video engines can decode more clips than one worker does. No `clips` stand for clips
        that one worker has to score in order.
        """
        if self.engine == "ray":
            from .cluster import Cluster

            return Cluster(backend=self.backend, address=self.address, software=self.software, profile=profile)
        specs = self.specs(profile=profile)
        if len(specs) > 1:
            from .processes import ProcessPool

            return ProcessPool(specs)
        (spec,) = specs
        engines = _engines(spec, clips, options)
        if engines // (1 + in_step) > 1:
            return EnginesPool(spec, engines // 2)
        return LocalPool(spec, in_step)

    def kinds(self) -> tuple[list[str], int]:
        """Return the kind of each worker that `open` would start, see `WorkerSpec`, and the number of cores that they share."""
        if self.engine == "ray":
            from .cluster import kinds

            return kinds(self.backend, self.address, self.software)
        return [spec.kind for spec in self.specs()], os.cpu_count() or 1

    def backends(self) -> list[BackendInfo]:
        """Return what reports say of the devices of this machine."""
        if self.backend != "vulkan":
            return [INFO]
        return [info_of(device) for device in self.several or [self._single()]]

    def specs(self, *, profile: bool = False) -> list[WorkerSpec]:
        """Return the workers of this machine."""
        if self.several:
            return [spec_of(device, profile=profile) for device in self.several]
        if self.backend != "vulkan":
            if self.device is not None:
                raise no_devices(self.device)
            return [WorkerSpec(self.backend, None, "cpu", self.backend, profile)]
        assert self.device is None or isinstance(self.device, str | int)
        # A selector means the same device until the process ends; see `backends.open_device`.
        return [replace(spec_of(self._single(), profile=profile), device=self.device)]

    def _single(self) -> DeviceInfo:
        assert self.device is None or isinstance(self.device, str | int)
        return single_device(self.device)


def _engines(spec: WorkerSpec, clips: Sequence[Clips], options: ScoreOptions) -> int:
    """Return how many clips a GPU can decode side by side if there is something to gain by that, or else 0.

    A decoder keeps one engine busy, and a worker has two of them, one for each clip. So there are half as many workers as
    engines, rounded down: with more threads, all of them wait longer for Python's lock.
    """
    paths = [path for pair in clips for path in pair.paths]
    if spec.backend != "vulkan" or not paths or not can_reopen(*paths):
        return 0
    if not all(may_be_container(path, clips[0].raw) for path in paths[:2]):  # CUDA is not loaded for other files
        return 0
    decoder = hardware_decoder(options.decode, spec.backend, spec.device)
    return 0 if decoder is None else sessions(decoder)
