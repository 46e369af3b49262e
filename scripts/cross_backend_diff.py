#!/usr/bin/env python3
"""The gate that the shaders have to pass: a backend's scores, compared with those of the CPU reference frame by frame."""

from __future__ import annotations

import json
import math
import sys
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

try:
    import click

    from vkssim import ScoreReport, VkssimError, score_files
    from vkssim.features import FEATURES
    from vkssim.formats import BIT_DEPTHS
    from vkssim.frames.open import RawDescription
    from vkssim.scorer import BACKENDS
    from vkssim.selection import Selection
except ImportError as error:
    import use_venv

    use_venv.run_again(error)

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CLIP = FIXTURES / "bbb_576x324_ref.mp4", FIXTURES / "bbb_576x324_dis.mp4"
REFERENCE = "cpu"

AGREE, MISMATCH, COULD_NOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class Comparison:
    """One score over all frames. `greatest` is the greatest difference and `frame` where it is first met."""

    name: str
    frames: int
    greatest: float
    frame: int
    mismatches: tuple[int, ...]


def difference(first: float | None, second: float | None) -> float:
    """The absolute difference of two scores: 0 where both are null (NaN), infinite where only one is, or one is not there."""
    if first is None or second is None:
        return math.inf
    if first == second or (math.isnan(first) and math.isnan(second)):
        return 0.0
    gap = abs(first - second)
    return math.inf if math.isnan(gap) else gap


def compare(tested: ScoreReport, trusted: ScoreReport, tolerance: float) -> list[Comparison]:
    """Compare every score of every frame that either report has."""
    by_number = [{frame.index: frame.metrics for frame in report.frames} for report in (tested, trusted)]
    numbers = sorted(by_number[0] | by_number[1])
    comparisons = []
    for name in dict.fromkeys((*tested.names, *trusted.names)):
        gaps = {n: difference(*(frames.get(n, {}).get(name) for frames in by_number)) for n in numbers}
        frame = max(gaps, key=lambda n: gaps[n])
        mismatches = tuple(n for n, gap in gaps.items() if not gap <= tolerance)
        comparisons.append(Comparison(name, len(numbers), gaps[frame], frame, mismatches))
    return comparisons


def as_text(comparisons: Sequence[Comparison], tested: ScoreReport, trusted: ScoreReport, places: int) -> str:
    """The comparison as a table, with both values of the worst frame of each score that mismatches."""
    lines = [
        f"{report.backend.backend:8}{report.backend.device}, driver {report.backend.driver}" for report in (tested, trusted)
    ]
    lines += [
        f"{comparisons[0].frames} frames of {tested.width}x{tested.height}, {tested.bits} bit;"
        f" they agree where the difference is at most {tolerance_of(places):g}",
        "",
        f"{'score':24}{'greatest difference':>20}{'in frame':>10}{'mismatches':>12}",
    ]
    for score in comparisons:
        lines.append(f"{score.name:24}{score.greatest:20.3e}{score.frame:10}{len(score.mismatches):12}")
    bad = [score for score in comparisons if score.mismatches]
    for score in bad:
        values = (
            f"{report.backend.backend} {frame.metrics.get(score.name)!r}"
            for report in (tested, trusted)
            for frame in report.frames
            if frame.index == score.frame
        )
        lines.append(f"{score.name}, frame {score.frame}: {', '.join(values)}")
    verdict = f"MISMATCH in {len(bad)} of {len(comparisons)} scores" if bad else "agree"
    return "\n".join([*lines, "", f"{tested.backend.backend} and {trusted.backend.backend} at {places} places: {verdict}"])


def as_json(comparisons: Sequence[Comparison], tested: ScoreReport, trusted: ScoreReport, places: int) -> str:
    """The comparison as JSON. `greatest_difference` is null where it is infinite: a null on one side only."""
    return json.dumps(
        {
            "agree": not any(score.mismatches for score in comparisons),
            "places": places,
            "tolerance": tolerance_of(places),
            "backends": [asdict(report.backend) for report in (tested, trusted)],
            "reference": tested.reference,
            "distorted": tested.distorted,
            "width": tested.width,
            "height": tested.height,
            "bitdepth": tested.bits,
            "frames": comparisons[0].frames,
            "scores": {
                score.name: {
                    "greatest_difference": score.greatest if math.isfinite(score.greatest) else None,
                    "frame": score.frame,
                    "mismatching_frames": score.mismatches,
                }
                for score in comparisons
            },
            "warnings": list(dict.fromkeys(tested.warnings + trusted.warnings)),
        },
        indent=2,
    )


def tolerance_of(places: int) -> float:
    """What `places` decimal places allow, absolute."""
    return 0.5 * 10.0**-places


@click.command(context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.option("--feature", required=True, metavar="NAME[=K=V:K=V]", help=f"One of {', '.join(FEATURES)}; enable_lcs is added.")
@click.option("--backend", type=click.Choice(BACKENDS), default="vulkan", show_default=True, help="The backend under test.")
@click.option("--places", type=click.IntRange(0, 17), default=4, show_default=True, help="Decimal places that must agree.")
@click.option("--device", metavar="INDEX|NAME|UUID", help="Vulkan device; else VKSSIM_DEVICE, else the first real GPU.")
@click.option("-r", "--reference", metavar="FILE", help="Reference clip; by default the 48 frames of fixtures/bbb_576x324.")
@click.option("-d", "--distorted", metavar="FILE", help="Distorted clip; both files or neither.")
@click.option("-w", "--width", type=click.IntRange(1), help="Width of raw files.")
@click.option("-h", "--height", type=click.IntRange(1), help="Height of raw files.")
@click.option("-p", "--pixel_format", type=click.Choice(["420", "422", "444", "400"]), help="Pixel format of raw files.")
@click.option("-b", "--bitdepth", type=click.Choice([str(bits) for bits in BIT_DEPTHS]), help="Depth of raw files.")
@click.option("--frame_cnt", type=click.IntRange(1), help="Compare that many frames at most.")
@click.option("--json", "form_json", is_flag=True, help="Print JSON in place of the table.")
def main(
    feature: str,
    backend: str,
    places: int,
    device: str | None,
    reference: str | None,
    distorted: str | None,
    width: int | None,
    height: int | None,
    pixel_format: str | None,
    bitdepth: str | None,
    frame_cnt: int | None,
    form_json: bool,
) -> int:
    """Compare a backend with the CPU reference over the same frames, score by score.

    Scores agree at N places where they differ by at most 0.5*10^-N, absolute; a null on one side only is a mismatch.

    Exit codes: 0 they agree; 1 they do not; 2 it could not run, or both sides are the same backend.
    """
    if backend == REFERENCE:
        raise click.UsageError(f"--backend {backend} is the reference itself; there would be nothing to compare")
    if (reference is None) != (distorted is None):
        raise click.UsageError("--reference and --distorted go together: give both, or neither for the bundled clip")
    if "-" in (reference, distorted):
        raise click.UsageError("standard input cannot be read twice; give files")
    pair = (reference, distorted) if reference is not None and distorted is not None else CLIP
    reports = []
    for name, chosen in ((backend, device), (REFERENCE, None)):
        reports.append(
            score_files(
                *pair,
                features=[feature + (":" if "=" in feature else "=") + "enable_lcs=true"],
                raw=RawDescription(width, height, pixel_format, int(bitdepth) if bitdepth else None),
                selection=Selection(count=frame_cnt),
                backend=name,
                device=chosen,
            )
        )
    tested, trusted = reports
    if (tested.backend.device, tested.backend.driver) == (trusted.backend.device, trusted.backend.driver):
        raise click.ClickException(f"both sides ran on {tested.backend}: nothing was compared")
    for warning in dict.fromkeys(tested.warnings + trusted.warnings):
        click.echo(f"warning: {warning}", err=True)
    comparisons = compare(tested, trusted, tolerance_of(places))
    click.echo((as_json if form_json else as_text)(comparisons, tested, trusted, places))
    return MISMATCH if any(score.mismatches for score in comparisons) else AGREE


if __name__ == "__main__":
    # Not click's own ending: it gives 1 for some errors, and 1 is to mean a mismatch and nothing else.
    try:
        sys.exit(main.main(standalone_mode=False))
    except click.ClickException as error:
        error.show()
    except VkssimError as error:
        click.echo(f"cross_backend_diff: {error}", err=True)
    except (click.Abort, KeyboardInterrupt):
        click.echo("cross_backend_diff: interrupted", err=True)
    except Exception:
        traceback.print_exc()
    sys.exit(COULD_NOT_RUN)
