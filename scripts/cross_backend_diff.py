#!/usr/bin/env python3
"""The gate that the shaders have to pass: a backend's scores beside the scores of the CPU reference and of libvmaf."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

try:
    import click
    import gate_matrix
    from exit_codes import AGREE, MISMATCH, end
    from gate_matrix import ScoreDifference, compare, tolerance_of, worst

    from vkssim import ScoreReport, score_files
    from vkssim.cli.options import raw_options
    from vkssim.frames.options import RawDescription, Selection
    from vkssim.metrics import FEATURES, with_options
    from vkssim.utils.choices import BACKENDS
except ImportError as error:
    import use_venv

    use_venv.run_again(error)

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CLIP = FIXTURES / "bbb_576x324_ref.mp4", FIXTURES / "bbb_576x324_dis.mp4"
REFERENCE = "cpu"
DEFAULT_PLACES = 4


# -- a pair of clips ------------------------------------------------------------------------------------------------------


def clip_as_text(comparisons: Sequence[ScoreDifference], tested: ScoreReport, trusted: ScoreReport, places: int) -> str:
    """Return the comparison as a table, with both values of the worst frame of each score that mismatches."""
    lines = [
        *(backend_line(report.backend.backend, report.backend.device, report.backend.driver) for report in (tested, trusted)),
        f"{comparisons[0].frames} frames of {tested.width}x{tested.height}, {tested.bits} bit;"
        f" they agree if the difference is at most {tolerance_of(places):g}",
        "",
        f"{'score':24}{'greatest difference':>20}{'in frame':>10}{'mismatches':>12}",
    ]
    lines += [f"{score.name:24}{score.greatest:20.3e}{score.frame:10}{len(score.mismatches):12}" for score in comparisons]
    bad = [score for score in comparisons if score.mismatches]
    sides = tested.backend.backend, trusted.backend.backend
    lines += [both_values(score, sides) for score in bad]
    verdict = f"MISMATCH in {len(bad)} of {len(comparisons)} scores" if bad else "agree"
    return "\n".join([*lines, "", f"{' and '.join(sides)} at {places} places: {verdict}"])


def backend_line(name: str, device: str, driver: str) -> str:
    """Return the line that says which device and driver a backend ran on."""
    return f"{name:8}{device}, driver {driver}"


def both_values(score: ScoreDifference, sides: Sequence[str]) -> str:
    """Return the two values of the worst frame of a score, with the names of the sides."""
    values = (f"{side} {value!r}" for side, value in zip(sides, score.values, strict=True))
    return f"{score.name}, frame {score.frame}: {', '.join(values)}"


def clip_as_json(comparisons: Sequence[ScoreDifference], tested: ScoreReport, trusted: ScoreReport, places: int) -> str:
    """Return the comparison as JSON. `greatest_difference` is null if it is infinite: a null on one side only."""
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
            "scores": scores_as_json(comparisons),
            "warnings": list(dict.fromkeys(tested.warnings + trusted.warnings)),
        },
        indent=2,
    )


def scores_as_json(comparisons: Sequence[ScoreDifference]) -> dict[str, dict[str, Any]]:
    """Return the greatest difference and the mismatching frames of each score."""
    return {
        score.name: {
            "greatest_difference": score.greatest if math.isfinite(score.greatest) else None,
            "frame": score.frame,
            "mismatching_frames": score.mismatches,
        }
        for score in comparisons
    }


# -- the matrix -----------------------------------------------------------------------------------------------------------


def matrix_as_text(result: gate_matrix.Result) -> str:
    """Return a line for each row with the greatest difference between each two sides, then what is wrong."""
    columns = (("vulkan", "cpu"), ("vulkan", "libvmaf"), ("cpu", "libvmaf"))
    width = max(len(row.name) for row in result.rows) + 2
    lines = [backend_line(info.backend, info.device, info.driver) for info in result.backends]
    lines += [f"libvmaf the scores in fixtures/, made by {result.stored}", ""]
    lines += [f"{'row':{width}}{'places':>6}" + "".join(f"{'-'.join(sides):>16}" for sides in columns)]
    for row in result.rows:
        gaps = (f"{worst(row.comparisons[sides]).greatest:.1e}" if sides in row.comparisons else "" for sides in columns)
        numbers = f"{row.places:6}" + "".join(f"{gap:>16}" for gap in gaps)
        lines.append(f"{row.name:{width}}{numbers}{'' if row.agrees else '  MISMATCH'}")
    lines += [line for row in result.rows for line in faults(row)]
    bad = sum(not row.agrees for row in result.rows)
    verdict = f"MISMATCH in {bad} of {len(result.rows)} rows" if bad else f"all {len(result.rows)} rows agree"
    return "\n".join([*lines, "", verdict])


def faults(row: gate_matrix.GateRow) -> Iterator[str]:
    """Return a sentence for each thing that is wrong with a row."""
    for sides, comparisons in row.comparisons.items():
        for score in comparisons:
            if score.mismatches:
                yield f"{row.name}: {both_values(score, sides)}"
    yield from (f"{row.name}: {problem}" for problem in row.problems)


def matrix_as_json(result: gate_matrix.Result) -> str:
    """Return every comparison of every row as JSON."""
    return json.dumps(
        {
            "agree": result.agrees,
            "backends": [asdict(info) for info in result.backends],
            "libvmaf": result.stored,
            "rows": [
                {
                    "name": row.name,
                    "agree": row.agrees,
                    "places": row.places,
                    "problems": row.problems,
                    "comparisons": {"-".join(sides): scores_as_json(found) for sides, found in row.comparisons.items()},
                }
                for row in result.rows
            ],
        },
        indent=2,
    )


# -- the command line -----------------------------------------------------------------------------------------------------


@click.command(context_settings={"help_option_names": ["--help"], "max_content_width": 100})
@click.option(
    "--feature",
    metavar="NAME[=K=V:K=V]",
    help=f"One of {', '.join(FEATURES)}; enable_lcs is added if there is such an option.",
)
@click.option("--backend", type=click.Choice(BACKENDS), default="vulkan", show_default=True, help="The backend under test.")
@click.option("--places", type=click.IntRange(0, 17), help=f"Decimal places that must agree.  [default: {DEFAULT_PLACES}]")
@click.option("--device", metavar="INDEX|NAME|UUID", help="Vulkan device; else VKSSIM_DEVICE, else the first real GPU.")
@click.option("-r", "--reference", metavar="FILE", help="Reference clip; by default the 48 frames of fixtures/bbb_576x324.")
@click.option("-d", "--distorted", metavar="FILE", help="Distorted clip; both files or neither.")
@raw_options
@click.option("--large", is_flag=True, help="Compare frames of 1920x1080 and 2305x1297, not those of the matrix.")
@click.option("--frame_cnt", type=click.IntRange(1), help="Compare that many frames at most.")
@click.option("--json", "form_json", is_flag=True, help="Print JSON in place of the table.")
def main(
    feature: str | None,
    backend: str,
    places: int | None,
    device: str | None,
    reference: str | None,
    distorted: str | None,
    raw: RawDescription,
    large: bool,
    frame_cnt: int | None,
    form_json: bool,
) -> int:
    """Compare a backend with the CPU reference over the same frames, score by score.

    With --feature the frames are those of a pair of clips. Without it they are those of the gate's matrix: samples of every
    depth, floats, odd sizes, every build of the kernels, and libvmaf's own scores as a third side. The matrix takes --device,
    --large and --json; each of its rows says how many places it is held to.

    Scores agree at N places if they differ by at most 0.5*10^-N, absolute; a null on one side only is a mismatch.

    Exit codes: 0 they agree; 1 they do not; 2 it could not run, or both sides are the same backend.
    """
    if backend == REFERENCE:
        raise click.UsageError(f"--backend {backend} is the reference itself; there would be nothing to compare")
    if feature is None:
        if raw != RawDescription() or any(value is not None for value in (places, reference, distorted, frame_cnt)):
            raise click.UsageError(
                "--feature says what is compared of the clips; without it only --device, --large and --json go"
            )
        result = gate_matrix.run(device, large=large)
        click.echo((matrix_as_json if form_json else matrix_as_text)(result))
        return AGREE if result.agrees else MISMATCH
    if large:
        raise click.UsageError("--large is for the matrix, and --feature for clips; give one of them")
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
                features=[with_options(feature, enable_lcs=True)],
                raw=raw,
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
    places = DEFAULT_PLACES if places is None else places
    comparisons = compare(gate_matrix.by_frame(tested), gate_matrix.by_frame(trusted), tolerance_of(places))
    click.echo((clip_as_json if form_json else clip_as_text)(comparisons, tested, trusted, places))
    return MISMATCH if any(score.mismatches for score in comparisons) else AGREE


if __name__ == "__main__":
    end(main, "cross_backend_diff")
