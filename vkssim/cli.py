"""The command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from . import __version__
from .errors import OptionError, OutputError, VkssimError, exit_code
from .formats import BIT_DEPTHS

TRACEBACK_VARIABLE = "VKSSIM_TRACEBACK"
"""Set to 1, this environment variable shows where an unexpected error came from."""

_FORMS = ("json", "xml", "csv", "sub")
_SETTINGS = {"help_option_names": ["--help"], "max_content_width": 100}  # -h is the height, as in libvmaf's tool


class _Main(click.Group):
    """Turns errors into a message and an exit code; no traceback reaches the user."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VkssimError as error:
            click.echo(f"vkssim: {error}", err=True)
            ctx.exit(exit_code(error))
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("vkssim: interrupted", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains as it ends
            ctx.exit(2)
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE) == "1":
                raise
            click.echo(
                f"vkssim: unexpected {type(error).__name__}: {error}. This is a fault of vkssim: please report it, with what"
                f" it prints under {TRACEBACK_VARIABLE}=1",
                err=True,
            )
            ctx.exit(2)


@click.group(cls=_Main, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="vkssim")
def main() -> None:
    """Score videos with the SSIM and MS-SSIM of libvmaf, on Vulkan.

    Exit codes: 0 scored; 1 the scores fail a demand (--strict); 2 usage, input or output error; 3 no usable device;
    130 interrupted.
    """


@main.command(context_settings=_SETTINGS)
@click.option("-r", "--reference", required=True, metavar="FILE", help="Reference clip: raw YUV, Y4M or container; - is stdin.")
@click.option("-d", "--distorted", required=True, metavar="FILE", help="Distorted clip; one of the two may be -.")
@click.option("-w", "--width", type=click.IntRange(1), help="Width of raw files.")
@click.option("-h", "--height", type=click.IntRange(1), help="Height of raw files.")
@click.option("-p", "--pixel_format", type=click.Choice(["420", "422", "444", "400"]), help="Pixel format of raw files.")
@click.option(
    "-b",
    "--bitdepth",
    type=click.Choice([str(bits) for bits in BIT_DEPTHS]),
    help="Depth of raw files; over 8 two bytes, little-endian.",
)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="NAME[=K=V:K=V]",
    help="Metric with options; may be repeated. Default: float_ms_ssim and float_ssim. `vkssim features` lists them.",
)
@click.option("-o", "--output", metavar="FILE", help="Write scores there; - is standard output. The form follows the ending.")
@click.option("--json", "form", flag_value="json", help="Output as JSON.")
@click.option("--xml", "form", flag_value="xml", help="Output as XML.")
@click.option("--csv", "form", flag_value="csv", help="Output as CSV.")
@click.option("--sub", "form", flag_value="sub", help="Output as MicroDVD subtitles.")
@click.option("--precision", default="6", show_default=True, metavar="N|max", help="Decimals, or max for round-trip doubles.")
@click.option("--subsample", type=click.IntRange(1), default=1, show_default=True, help="Score every N-th frame only.")
@click.option("--frame_cnt", type=click.IntRange(1), help="Compare that many frames at most.")
@click.option("--frame_skip_ref", type=click.IntRange(0), default=0, help="Skip frames of the reference.")
@click.option("--frame_skip_dist", type=click.IntRange(0), default=0, help="Skip frames of the distorted clip.")
@click.option("--strict", is_flag=True, help="Fail with exit code 1 where one clip is shorter.")
@click.option(
    "--backend", type=click.Choice(["vulkan", "cpu"]), default="vulkan", show_default=True, help="cpu is NumPy: slow, exact."
)
@click.option("--device", metavar="INDEX|NAME|UUID", help="Vulkan device; else VKSSIM_DEVICE, else the first real GPU.")
@click.option("--profile", is_flag=True, help="Show where the time goes, stage by stage.")
@click.option("-q", "--quiet", is_flag=True, help="No progress, no summary.")
def score(
    reference: str,
    distorted: str,
    width: int | None,
    height: int | None,
    pixel_format: str | None,
    bitdepth: str | None,
    features: tuple[str, ...],
    output: str | None,
    form: str | None,
    precision: str,
    subsample: int,
    frame_cnt: int | None,
    frame_skip_ref: int,
    frame_skip_dist: int,
    strict: bool,
    backend: str,
    device: str | None,
    profile: bool,
    quiet: bool,
) -> None:
    """Score a distorted clip against its reference, frame by frame."""
    from .files import Selection, score_files
    from .frames.open import RawDescription

    deliver = _output(output, form, precision, (reference, distorted))
    to_stdout = deliver is not None and output in (None, "-")
    progress = _Progress() if sys.stderr.isatty() and not quiet else None
    failure: VkssimError | None = None
    try:
        report = score_files(
            reference,
            distorted,
            features=features or ("float_ms_ssim", "float_ssim"),
            raw=RawDescription(width, height, pixel_format, int(bitdepth) if bitdepth else None),
            selection=Selection(frame_skip_ref, frame_skip_dist, frame_cnt, subsample),
            strict=strict,
            backend=backend,
            device=device,
            profile=profile,
            progress=progress,
        )
    except VkssimError as error:
        if error.report is None or not error.report.frames:
            raise
        failure, report = error, error.report
    finally:
        if progress is not None:
            progress.close()
    if deliver is not None:
        deliver(report)
    for warning in report.warnings:
        click.echo(f"vkssim: warning: {warning}", err=True)
    if not quiet:
        from .summary import print_profile, print_summary

        print_summary(report, sys.stderr if to_stdout else sys.stdout)
        if profile:
            print_profile(report, sys.stderr if to_stdout else sys.stdout)
    if failure is not None:
        raise failure


def _output(output: str | None, form: str | None, precision: str, inputs: Sequence[str]) -> Callable[[Any], None] | None:
    """What delivers a report where it was asked for, checked before anything is scored; None where none was asked for."""
    from .report import check_writable, render, write
    from .report.numbers import NumberFormat

    NumberFormat.parse(precision)
    if output is None and form is None:
        return None
    if form is None:
        assert output is not None
        form = Path(output).suffix.lstrip(".").lower()
        if form not in _FORMS:
            endings = ", ".join("." + name for name in _FORMS)
            raise OptionError(f"--output {output} does not end in {endings}; say --json, --xml, --csv or --sub")
    chosen = form
    if output in (None, "-"):
        return lambda report: _print(render(report, chosen, precision))
    assert output is not None
    path = Path(output)
    if any(path.exists() and Path(name).exists() and path.samefile(name) for name in inputs):
        raise OutputError(f"--output {output} is one of the clips; it would be overwritten")
    check_writable(path)
    return lambda report: write(render(report, chosen, precision), path)


def _print(text: str) -> None:
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror}") from None


class _Progress:
    """A progress bar on standard error, shown from the first scored batch on."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, done: int, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("frames, {task.fields[rate]:.1f} frames/s,"),
                TimeRemainingColumn(),
                TextColumn("left"),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=total, rate=0.0)
        task = self._bar.tasks[0]
        self._bar.update(self._task, completed=done, total=total, rate=task.speed or 0.0)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


@main.command(context_settings=_SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def devices(as_json: bool) -> None:
    """List the Vulkan devices, the preferred one first."""
    from .host.devices import list_devices
    from .host.instance import Instance

    with Instance() as instance:
        found = list_devices(instance)
        if not found:
            from .errors import NoDeviceError

            raise NoDeviceError(
                "no Vulkan device found; `apt install mesa-vulkan-drivers` brings Mesa's drivers, lavapipe among them"
            )
        if as_json:
            import json

            keys = ("index", "name", "driver", "lacks")
            rows = [
                {**{key: getattr(device, key) for key in keys}, "kind": device.kind.name.lower(), "uuid": str(device.uuid)}
                for device in found
            ]
            click.echo(json.dumps(rows, indent=2))
            return
        for device in found:
            version = ".".join(map(str, device.api_version))
            kind = device.kind.name.lower()
            click.echo(f"{device.index}: {device.name} [{kind}] Vulkan {version}, {device.driver}, UUID {device.uuid}")
            if device.lacks:
                click.echo(f"   cannot be used: lacks {', '.join(device.lacks)}")


@main.command(context_settings=_SETTINGS)
def features() -> None:
    """List the metrics and their options."""
    from .features import FEATURES

    for feature in FEATURES.values():
        click.echo(feature.name)
        for name, option in feature.options.items():
            default = str(option.default).lower() if isinstance(option.default, bool) else option.default
            click.echo(f"   {name}={default}   {option.summary}")


if __name__ == "__main__":
    main()
