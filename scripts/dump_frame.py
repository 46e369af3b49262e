#!/usr/bin/env python3
"""One frame, stage by stage: each plane and partial sum of a device beside those of its NumPy twin.

The plan of a frame runs once, with every buffer read back. The twin of a stage gets the samples that the stage itself read on
the device, so that an error shows in the stage that makes it, and not again in those after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

try:
    import click
    import numpy as np
    import numpy.typing as npt
    from exit_codes import AGREE, MISMATCH, end

    from vkssim.backends.sessions import open_device
    from vkssim.backends.vulkan import frame_plan
    from vkssim.cli.options import raw_options
    from vkssim.errors import InputError, OptionError
    from vkssim.frames.options import PictureOptions, RawDescription
    from vkssim.frames.pairing.preprocessing import common_format, open_pair
    from vkssim.host.device import Device
    from vkssim.host.executor import Bytes, Executor
    from vkssim.host.plan import Dispatch, Plan, Role
    from vkssim.metrics.dispatches import MARGIN, SAMPLES, KernelShape
    from vkssim.metrics.plane_metrics import FrameMetrics
    from vkssim.metrics.samples import ingest
    from vkssim.metrics.ssim import decimate, downscale, ssim_maps
    from vkssim.shaders import load_module
    from vkssim.shaders.interface import INTERFACES, Precision
    from vkssim.types import FloatPlane, FrameFormat, Samples
except ImportError as error:
    import use_venv

    use_venv.run_again(error)

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CLIP = str(FIXTURES / "bbb_576x324_ref.mp4"), str(FIXTURES / "bbb_576x324_dis.mp4")

PLANES = "reference", "distorted"
TERMS = {"ssim": ("l c s", "l", "c", "s"), "ms_ssim": ("l", "c", "s")}

TOLERANCES = {
    ("ssim_downscale", Precision.EXACT): 3.1e-5,
    ("ms_ssim_decimate", Precision.EXACT): 3.1e-5,
    ("ms_ssim_decimate", Precision.FAST): 2e-3,
    **{(stem, Precision.EXACT): 1e-6 for stem in TERMS},
    **{(stem, Precision.FAST): 1e-5 for stem in TERMS},
}
"""The largest difference of a sample, or of a sum divided by its windows; tests/support/tolerances.py has the reasons."""


@dataclass(frozen=True, eq=False)
class Stage:
    """The result of one dispatch on the device, and of its twin.

    Planes are (2, H, W) float32 on the 0..255 scale. Sums are (rows of workgroups, columns of workgroups, terms): 1 - l c s (of
    float_ssim), 1 - l, 1 - c and 1 - s, averaged over the windows of a workgroup.
    """

    label: str
    device: npt.NDArray[Any]
    twin: npt.NDArray[Any]
    tolerance: float
    terms: tuple[str, ...] = ()
    """The terms of sums; empty for planes."""

    @property
    def gaps(self) -> npt.NDArray[np.float64]:
        """Return the absolute differences; infinite if only one side is a number."""
        found: npt.NDArray[np.float64] = np.abs(self.device.astype(np.float64) - self.twin)
        found[np.isnan(found)] = np.inf
        found[np.isnan(self.device) & np.isnan(self.twin)] = 0.0
        return found

    @property
    def agrees(self) -> bool:
        """Return whether no difference exceeds the tolerance."""
        return not (self.gaps > self.tolerance).any()

    def first(self) -> str:
        """Return the first position that differs, with both values and the number of such positions."""
        differs = self.gaps > self.tolerance
        position = tuple(map(int, np.argwhere(differs)[0]))
        if self.terms:
            where = f"{self.terms[position[2]]} of the workgroup in row {position[0]}, column {position[1]}"
        else:
            where = f"the {PLANES[position[0]]} plane, row {position[1]}, column {position[2]}"
        return (
            f"{where}: {self.device[position]:.9g} on the device, {self.twin[position]:.9g} by the twin"
            f" ({differs.sum()} of {differs.size} differ)"
        )


def plan_of(feature: str, frame: FrameFormat, shape: KernelShape) -> Plan:
    """Return the plan of one metric. Raises OptionError if a stage has no twin here: another window, or float_psnr."""
    plan, _ = frame_plan(FrameMetrics(feature, [frame]).planes, shape)
    without = {_stem(dispatch) for dispatch in plan.dispatches} - {stem for stem, _ in TOLERANCES}
    if without:
        raise OptionError(
            f"{feature} uses {', '.join(sorted(without))}; float_ssim and float_ms_ssim with Gaussian windows have a dump"
        )
    return plan


def run_plan(device: Device, plan: Plan, frame: FrameFormat, samples: Samples) -> dict[str, Bytes]:
    """Return the bytes of every buffer that the kernels of a plan write, from (2, H, W) samples."""
    buffers = tuple(replace(spec, role=Role.LARGE_OUTPUT) if spec.role is Role.WORK else spec for spec in plan.buffers)
    with Executor(device, replace(plan, buffers=buffers), load_module, slots=1) as executor:
        slot = executor.slots[0]
        rows = slot.inputs[SAMPLES][0].reshape(2, frame.height, -1)[..., : frame.row_bytes]
        rows.view(frame.dtype)[:] = samples
        executor.submit(slot, 1)
        executor.wait(slot)
        return {name: data[0].copy() for name, data in slot.outputs.items()}


def stages(
    plan: Plan, shape: KernelShape, frame: FrameFormat, samples: Samples, written: Mapping[str, Bytes]
) -> Iterator[Stage]:
    """Yield the stages of a plan in order, from the samples and the buffers that `run_plan` returned for them."""
    planes: dict[str, FloatPlane] = {SAMPLES: ingest(samples, frame.factor)}
    for dispatch in plan.dispatches:
        stem, precision = _stem(dispatch), _precision(dispatch)
        push = INTERFACES[stem].unpack(dispatch.push)
        source, target = planes[dispatch.sources[0]], written[dispatch.targets[0]].view(np.float32)
        if stem in TERMS:
            walk = replace(shape, precision=precision).window_columns
            device, twin = _sums(target, dispatch, push, walk, source)
        else:
            twin = np.stack([_smaller(plane, stem, push) for plane in source])
            rows = target.reshape(-1, push["target_pitch"])[: 2 * twin.shape[1]]
            device = planes[dispatch.targets[0]] = rows.reshape(2, twin.shape[1], -1)[..., : twin.shape[2]]
        yield Stage(dispatch.label, device, twin, TOLERANCES[stem, precision], TERMS.get(stem, ()))


def _stem(dispatch: Dispatch) -> str:
    return dispatch.kernel.module.partition(".")[0]


def _precision(dispatch: Dispatch) -> Precision:
    return Precision.FAST if dispatch.kernel.module.endswith(".fast") else Precision.EXACT


def _smaller(plane: FloatPlane, stem: str, push: Mapping[str, Any]) -> FloatPlane:
    with np.errstate(invalid="ignore", over="ignore"):  # a faulty stage may leave NaN and infinities to the next one
        return downscale(plane, push["factor"]) if stem == "ssim_downscale" else decimate(plane)


def _sums(
    sums: FloatPlane, dispatch: Dispatch, push: Mapping[str, Any], columns: int, source: FloatPlane
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the sums of each workgroup by the device and by the twin, divided by the number of its windows."""
    across, down = dispatch.groups
    stem = _stem(dispatch)
    terms = len(TERMS[stem])
    numbers = terms if stem == "ssim" else 2 * terms  # ms_ssim.comp counts the values that it adds as their distance from 0
    first, count = push["first_partial"], across * down * numbers
    rows = np.arange(down) * push["strip"]
    starts = np.arange(across) * columns
    maps = 1.0 - np.stack(ssim_maps(*source)[-terms:], axis=-1)
    twin = np.add.reduceat(np.add.reduceat(maps, rows, axis=0), starts, axis=1)
    heights = np.diff(rows, append=push["height"] - MARGIN)
    widths = np.diff(starts, append=push["width"] - MARGIN)
    windows = np.outer(heights, widths)[..., None]
    written = sums[first : first + count].reshape(down, across, -1, terms).astype(np.float64).sum(axis=2)
    return written / windows, twin / windows


def table(found: list[Stage]) -> str:
    """Return a line for each stage, then the first position of the first stage that differs."""
    lines = [f"{'stage':26}{'size':>14}{'tolerance':>11}{'greatest':>11}"]
    for stage in found:
        size = "x".join(map(str, reversed(stage.device.shape[:2] if stage.terms else stage.device.shape[1:])))
        end = "" if stage.agrees else "  DIFFERS"
        lines.append(f"{stage.label:26}{size:>14}{stage.tolerance:11.1e}{stage.gaps.max():11.1e}{end}")
    wrong = next((stage for stage in found if not stage.agrees), None)
    return "\n".join([*lines, "", "all stages agree" if wrong is None else f"{wrong.label}: {wrong.first()}"])


def read_pair(paths: tuple[str, str], raw: RawDescription, number: int) -> tuple[FrameFormat, Samples]:
    """Return the format and the (2, H, W) luma of the frames of a number. Raises InputError if a clip has no such frame."""
    with ExitStack() as stack:
        sources = [stack.enter_context(source) for source in open_pair(paths, raw, PictureOptions())]
        frame = common_format(sources[0], sources[1])
        planes = [source.info.new_planes(1) for source in sources]
        for source, target in zip(sources, planes, strict=True):
            if source.read([number], [target]) == 0:
                raise source.problem or InputError(f"{source.info.path} has no frame {number}; frames are counted from 0")
        return frame, np.stack([luma for (luma,) in planes])


@click.command(context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.option("--feature", metavar="NAME[=K=V:K=V]", default="float_ms_ssim", show_default=True, help="The metric.")
@click.option(
    "--frame", "number", type=click.IntRange(0), default=0, show_default=True, help="Number of the frame in both clips."
)
@click.option(
    "-o",
    "--output",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a file NN-STAGE.npz for each stage, with `device` and `twin`.",
)
@click.option("--device", metavar="INDEX|NAME|UUID", help="Vulkan device; else VKSSIM_DEVICE, else the first real GPU.")
@click.option("-r", "--reference", metavar="FILE", default=CLIP[0], help="Reference clip; by default fixtures/bbb_576x324.")
@click.option("-d", "--distorted", metavar="FILE", default=CLIP[1], help="Distorted clip.")
@raw_options
def main(
    feature: str,
    number: int,
    output: Path | None,
    device: str | None,
    reference: str,
    distorted: str,
    raw: RawDescription,
) -> int:
    """Compare each plane and each partial sum of one frame's luma with its NumPy twin.

    The table names the first stage that differs by more than its tolerance, the position, and both values. The device is used
    even if its self-test fails.

    Exit codes: 0 all stages agree; 1 one differs; 2 it could not run.
    """
    frame, samples = read_pair((reference, distorted), raw, number)
    with ExitStack() as stack:
        opened = open_device(stack, device)
        shape = KernelShape.for_device(opened.info)
        plan = plan_of(feature, frame, shape)
        written = run_plan(opened, plan, frame, samples)
        click.echo(f"{opened.info.description}, {shape.shape.value} kernels; frame {number} of {reference}\n")
    found = list(stages(plan, shape, frame, samples, written))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for position, stage in enumerate(found, 1):
            np.savez_compressed(
                output / f"{position:02}-{stage.label.replace(' ', '-')}.npz", device=stage.device, twin=stage.twin
            )
    click.echo(table(found))
    return AGREE if all(stage.agrees for stage in found) else MISMATCH


if __name__ == "__main__":
    end(main, "dump_frame")
