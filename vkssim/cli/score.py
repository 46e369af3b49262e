"""Score a distorted clip against its reference: the command `vkssim score`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..errors import InterruptedRunError, OptionError, VkssimError
from ..host.errors import COMPILE_LOG
from ..page import WORST
from ..utils.progress import ProgressBar
from ..utils.values import Section
from ..utils.version import __version__
from .command import add_options, make_command, option
from .delivery import TABLE_WORST, Deliveries, LiveLines, MapOutput, OutputOptions, map_options, open_journal
from .options import backend_options, clip_options, decode_option, fail_under_option, score_options, single_device
from .output import COMPILE_NOTES, SUFFIXES, LocalPathType, form_options
from .report import PageOptions, budget_option, write_page

if TYPE_CHECKING:
    from ..engine.journal import Journal
    from ..frames.options import RawDescription
    from ..report.results import ScoreReport


_PRESET = (
    "vkssim gives VMAF, SSIM, MS-SSIM and the PSNR of luma alone. What that preset asks of SSIM is"
    " --feature float_ssim=enable_db=true:clip_db=true"
)
_REFUSED = {
    "aom_ctc": f"{_PRESET} --feature float_ms_ssim=enable_db=true:clip_db=true",
    "nflx_ctc": _PRESET,
}


def _refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        flag = "--" + str(parameter.name)
        raise OptionError(f"{flag} {value[0]}: {_REFUSED[str(parameter.name)]}")


_IGNORED: dict[str, Any] = {"section": Section.LIBVMAF, "help": "Accepted; it changes nothing.", "expose_value": False}
_REFUSAL = {**_IGNORED, "help": "Refused: not all of its metrics are here."}


# Flags of libvmaf's tool `vmaf`, so that its command lines can be taken over.
_vmaf_flags = add_options(
    option("-n --no_prediction", is_flag=True, **_IGNORED),
    *(option(name, metavar="N", **_IGNORED) for name in ("--gpumask", "--cpumask", "--threads")),
    option(
        "-m --model",
        Section.LIBVMAF,
        "Compute VMAF by that model: version=NAME or path=FILE, with name=NAME and enable_transform=true. May be repeated.",
        multiple=True,
        metavar="K=V:K=V",
    ),
    *(option(name, multiple=True, callback=_refuse, metavar="NAME", **_REFUSAL) for name in ("--aom_ctc", "--nflx_ctc")),
)


@make_command(
    "score",
    examples="""
        vkssim score reference.mp4 distorted.mp4 -o scores.json
            Score every frame, print the tables, and write all scores to a file.
        vkssim score master.mov 720p.mp4 --scale reference --sync pts --html page.html
            Compare clips of another size and frame rate, and write a page to look at.
        vkssim score reference.mp4 crf20.mp4 crf25.mp4 crf30.mp4 -o scores.csv
            Score three encodes, and decode the reference once.
        vkssim score ref.yuv dis.yuv -w 1920 -h 1080 -p 420 -b 10 -q --print float_ms_ssim
            Compare raw files, and print nothing but the mean.
    """,
    common="""
        reference distorted width height pixel_format bits start end offset find_offset sync crop scale features planes paths
        html folder resume printed quiet fail_under strict device
    """,
)
@click.argument("clips", nargs=-1, type=click.Path(), metavar="REFERENCE DISTORTED…")
@option(
    "-r --reference",
    Section.INPUTS,
    "Read the reference clip from that file: raw YUV, Y4M or a container; - is stdin. Of"
    " files without a flag, the first is the reference.",
    type=click.Path(),
    metavar="FILE",
)
@option(
    "-d --distorted",
    Section.INPUTS,
    "Read the distorted clip from that file; one of the two may be -. Of several clips, each is scored.",
    type=click.Path(),
    metavar="FILE",
)
@clip_options(find_offset=True)
@option(
    "-o --output paths",
    Section.OUTPUTS,
    f"Write scores there; - is stdout. The form follows the ending ({', '.join(SUFFIXES)}); without one it is XML. May be"
    " repeated.",
    type=click.Path(),
    multiple=True,
    metavar="FILE",
)
@form_options
@option(
    "--resume", Section.OUTPUTS, "Continue a run with the same --output that was cut off, or begin at the start.", is_flag=True
)
@option("--html", Section.OUTPUTS, "Write a page with charts and the worst moments there.", metavar="FILE")
@budget_option
@option(
    "--precision",
    Section.OUTPUTS,
    "Write that many decimals; with max, numbers read back to the same doubles.",
    default="6",
    metavar="N|max",
)
@option(
    "--merge",
    Section.OUTPUTS,
    "Add the scores of that JSON of libvmaf's tools, such as VMAF, to tables, page and --output. May be repeated.",
    multiple=True,
    type=LocalPathType(),
    metavar="FILE",
)
@map_options
@option("--live", Section.OUTPUTS, "Print a line of JSON to stdout for each frame, as soon as it is scored.", is_flag=True)
@option(
    "--worst",
    Section.OUTPUTS,
    f"Show that many of the worst frames. Default: {TABLE_WORST}, on the page of --html {WORST}.",
    type=click.IntRange(0),
)
@fail_under_option(
    "Fail with exit code 1 if a pooled score is lower: mean (default), harmonic_mean, min, max, mean_db, p1, p5, p10, p50."
    " May be repeated."
)
@option(
    "--strict",
    Section.VERDICT,
    "Fail with exit code 1 if a clip is damaged or shorter, or the frame rates differ.",
    is_flag=True,
)
@backend_options
@decode_option
@option("--profile", Section.OUTPUTS, "Show where the time goes, stage by stage.", is_flag=True)
@option(
    "--print printed",
    Section.OUTPUTS,
    "Print that pooled value as a bare number on stdout, with -q too; everything else goes to stderr. POOLING as for"
    " --fail-under. May be repeated, a line each.",
    multiple=True,
    metavar="NAME[:POOLING]",
)
@option("-q --quiet", Section.OUTPUTS, "Print no progress and no summary.", is_flag=True)
@click.version_option(__version__, "-v", "--version", prog_name="vkssim", hidden=True)
@_vmaf_flags
def command(
    clips: tuple[str, ...],
    reference: str | None,
    distorted: str | None,
    raw: RawDescription,
    find_offset: bool,
    fail_under: tuple[str, ...],
    selector: dict[str, Any],
    resume: bool,
    maps: MapOutput,
    model: tuple[str, ...],
    **values: Any,
) -> None:
    """Score a distorted clip against its reference, frame by frame.

    Several distorted clips are scored as `vkssim batch` does, with a row each. Command lines of libvmaf's tool `vmaf` are
    understood.
    """
    from ..engine.engine import RunSettings, score_pair
    from ..engine.options import Clips, check_options
    from ..engine.verdict import offset_of
    from ..metrics.vmaf import feature_of_model
    from ..report.reading import names_to_merge, read_report
    from ..report.thresholds import parse_pooled, parse_threshold

    if model:  # they take the place of the default features
        source = click.get_current_context().get_parameter_source("features")
        named = () if source is ParameterSource.DEFAULT else values["features"]
        values["features"] = (*named, *map(feature_of_model, model))
    options = score_options(values, selector["backend"])
    output = OutputOptions(**values)
    first, *encodes = _name_clips(clips, reference, distorted)
    if len(encodes) > 1:
        from .several import score_several

        score_several(first, encodes, raw, options, output, selector, fail_under=fail_under, find_offset=find_offset)
        return
    pair = Clips(first, encodes[0], raw)
    pooled = [parse_pooled(text) for text in output.printed]
    thresholds = [*map(parse_threshold, fail_under), *pooled]
    outputs = output.outputs([*pair.paths, *map(str, output.merge)])
    merged = {path: read_report(path) for path in output.merge}
    added = {name for source in merged.values() for name in names_to_merge(source)}
    check_options(options, thresholds, added)
    computed = [threshold for threshold in thresholds if threshold.name not in added]
    maps.check(pair.paths)
    alone = single_device(selector)
    progress = ProgressBar() if sys.stderr.isatty() and not output.quiet else None
    if output.quiet:
        COMPILE_LOG.removeHandler(COMPILE_NOTES)
    if find_offset:
        options = replace(options, selection=replace(options.selection, offset=offset_of(pair, options)))
    lines = LiveLines(output.precision, ends_run=not (output.paths or output.html or maps.folder)) if output.live else None
    journal = open_journal(output.paths, pair, options, resume=resume, quiet=output.quiet)
    settings = RunSettings(output.profile, progress, lines, computed, journal)
    failure: VkssimError | InterruptedRunError | None = None
    try:
        report = score_pair(pair, options, selector["device"], settings)
    except (VkssimError, InterruptedRunError) as error:
        report, failure = _scored_frames(error, journal), error
    finally:
        if progress is not None:
            progress.close()
    if find_offset:
        offset = options.selection.offset
        same, shifted = ("", f"i{offset:+d}") if offset else ("the clips are not shifted: ", "i")
        report.notes.append(f"{same}frame i of the reference is compared with frame {shifted} of the distorted clip")
    done = Deliveries(report, failure)
    output.deliver(done, outputs, merged, [threshold for threshold in thresholds if threshold not in computed], pooled, journal)
    if lines is not None and lines.failure not in (None, failure):
        done.failures.append(lines.failure)
    if output.html is not None:
        done.check()
        worst = WORST if output.worst is None else output.worst
        page_options = PageOptions(raw, alone, worst, output.budget, thresholds, options.strict)
        done.attempt(write_page, report, failure, output.html, page_options, name=output.html)
    if maps.folder is not None and done.complete:
        done.check()
        write_maps = partial(maps.write, raw=raw, **alone)
        done.attempt(write_maps, report, name=os.path.join(maps.folder, ""))
    done.end(quiet=output.quiet)


def _scored_frames(error: VkssimError | InterruptedRunError, journal: Journal | None) -> ScoreReport:
    """Return the report of the frames that were scored before an error. Raises the error if there are none."""
    report: ScoreReport | None = error.report
    if report is None or not report.frames:
        if journal is not None:
            journal.leave(error)
        raise error
    return report


def _name_clips(files: tuple[str, ...], reference: str | None, distorted: str | None) -> list[str]:
    """Return the reference and the distorted clips: those that flags name, and in their order the files without a flag."""
    named = [reference, distorted]
    if len(files) < named.count(None):
        given = ", ".join([*files, *(f"{flag} {name}" for flag, name in zip(["-r", "-d"], named, strict=True) if name)])
        raise click.UsageError(
            f"a reference and a distorted clip are needed, and {given or 'no file'} is given:"
            " `vkssim score REFERENCE DISTORTED`, or -r REFERENCE -d DISTORTED"
        )
    rest = list(files)
    return [*(rest.pop(0) if name is None else name for name in named), *rest]
