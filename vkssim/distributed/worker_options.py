"""Choose where workers run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..errors import OptionError
from ..scoring.options import Selector
from ..utils.choices import ENGINES
from .devices import chosen_devices, single_device, spec_of
from .task import WorkerSpec
from .worker_pool import WorkerPool


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

    def several(self) -> bool:
        """Return True where there may be more than one worker."""
        return self.engine != "local" or len(chosen_devices(self.backend, self.device)) > 1

    def open(self, *, profile: bool = False) -> WorkerPool:
        """Start the workers. Raises DeviceError where there is no device for them."""
        if self.engine == "ray":
            from .cluster import Cluster

            return Cluster(backend=self.backend, address=self.address, software=self.software, profile=profile)
        specs = self.specs(profile=profile)
        if len(specs) > 1:
            from .processes import ProcessPool

            return ProcessPool(specs)
        from .threads import LocalPool

        return LocalPool(specs[0])

    def kinds(self) -> tuple[list[str], int]:
        """Return the kind of each worker that `open` would start, see `WorkerSpec`, and the number of cores that they share."""
        if self.engine == "ray":
            from .cluster import kinds

            return kinds(self.backend, self.address, self.software)
        return [spec.kind for spec in self.specs()], os.cpu_count() or 1

    def specs(self, *, profile: bool = False) -> list[WorkerSpec]:
        """Return the workers of this machine."""
        several = chosen_devices(self.backend, self.device)
        if several:
            return [spec_of(device, profile=profile) for device in several]
        if self.backend != "vulkan":
            return [WorkerSpec(self.backend, None, "cpu", self.backend, profile)]
        assert self.device is None or isinstance(self.device, str | int)
        return [spec_of(single_device(self.device), profile=profile)]
