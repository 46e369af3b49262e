"""The plan: which kernels run on which buffers and in which order, as plain data.

A plan is built and tested without a device. Only `executor.Executor` and the losses of CUDA tensors run it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """The writers and readers of a buffer."""

    INPUT = "the host writes frames, kernels read them"
    WORK = "kernels write and read"
    OUTPUT = "kernels write a little, the host reads it"
    TABLE = "the same for all frames: the host writes it once, kernels read it"
    LEAD = "a part of the frames before the first one of a batch: the device copies it from earlier batches, kernels read it"
    LARGE_OUTPUT = "kernels write and read, the host reads the results: copied if the device has memory of its own"


@dataclass(frozen=True)
class BufferSpec:
    """A buffer of `frame_bytes` for each frame of a batch, or once for a table. Sizes are multiples of 16 bytes."""

    name: str
    role: Role
    frame_bytes: int
    content: bytes = b""
    """The bytes of a table; other buffers have none."""
    of: str = ""
    """The input of whose frames a lead has the first bytes; other buffers have none."""
    frames: int = 1
    """The number of frames that a lead has."""
    begins_with_zeros: bool = False
    """Whether a buffer of WORK is filled with zeros when it is made; kernels leave zeros there at the end of a batch."""


@dataclass(frozen=True)
class Kernel:
    """A SPIR-V module with its specialisation constants as (id, value), values uint32. It is compiled once.

    The buffers that it reads are bound from 0, followed by those that it writes. All are storage buffers. With `texel_input`,
    the buffers that it reads are uniform texel buffers with texels of four uint32.
    """

    module: str
    constants: tuple[tuple[int, int], ...] = ()
    texel_input: bool = False
    sources: int = 1
    targets: int = 1


@dataclass(frozen=True)
class Dispatch:
    """One run of a kernel over every frame of a batch.

    `sources` and `targets` are the names of the buffers that it reads and writes, in the order of their bindings. A buffer that
    is changed in place is a target, and a source too if the kernel reads it as texels. `push` has the bytes of the push
    constants. The next two int32 are the first workgroup in y and in z. `groups` has the workgroups in x and y, and `layers`
    the workgroups in z for one frame. `label` is the name of the stage in profiles.
    """

    label: str
    kernel: Kernel
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    push: bytes
    groups: tuple[int, int]
    layers: int = 1


@dataclass(frozen=True)
class Plan:
    """The buffers and the steps in order. Dispatches of one step do not depend on each other and may overlap."""

    buffers: tuple[BufferSpec, ...]
    steps: tuple[tuple[Dispatch, ...], ...]

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """Return all dispatches of a batch, in the order in which they are recorded."""
        return tuple(dispatch for step in self.steps for dispatch in step)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Return each different kernel once."""
        return tuple(dict.fromkeys(dispatch.kernel for dispatch in self.dispatches))

    def buffer(self, name: str) -> BufferSpec:
        """Return the buffer of that name. Raises KeyError if there is none."""
        return {spec.name: spec for spec in self.buffers}[name]

    def validate(self) -> None:
        """Raise ValueError if the plan is inconsistent.

        It is inconsistent if buffers are unknown or named twice, if bindings are missing, if a lead is of no input, or if a
        step has a data race.
        """
        doubled = [name for name, count in Counter(spec.name for spec in self.buffers).items() if count > 1]
        if doubled:
            raise ValueError(f"buffers named twice: {doubled}")
        names, inputs = {spec.name for spec in self.buffers}, {spec.name for spec in self.buffers if spec.role is Role.INPUT}
        for spec in self.buffers:
            if spec.role is Role.LEAD and spec.of not in inputs:
                raise ValueError(f"{spec.name} is a lead of {spec.of!r}, which is no input")
        for dispatch in self.dispatches:
            kernel, bound = dispatch.kernel, (len(dispatch.sources), len(dispatch.targets))
            if bound != (kernel.sources, kernel.targets):
                raise ValueError(f"{dispatch.label}: {bound} buffers for ({kernel.sources}, {kernel.targets}) bindings")
        for step in self.steps:
            read = {name for dispatch in step for name in dispatch.sources if name not in dispatch.targets}
            written = {name for dispatch in step for name in dispatch.targets}
            if not read | written <= names:
                raise ValueError(f"unknown buffers: {sorted((read | written) - names)}")
            if read & written:
                raise ValueError(f"one step both reads and writes {sorted(read & written)}")
