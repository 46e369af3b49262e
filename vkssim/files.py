"""Scores two video files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace

from .distributed.pair import score_pair
from .errors import VkssimError
from .features.plane_metrics import feature_texts
from .frames.options import PictureOptions, RawDescription, Selection
from .report.results import ScoreReport
from .report.thresholds import parse_pooled, parse_threshold
from .scoring.options import Clips, ScoreOptions, Selector
from .scoring.run_settings import OnFrames, Progress, RunSettings
from .scoring.run_store import RunStore, open_store
from .utils.choices import DECODERS


def score_files(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    features: Sequence[str] | str = ("float_ms_ssim", "float_ssim"),
    planes: str = "y",
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    sync: str = "index",
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
    strict: bool = False,
    backend: str = "vulkan",
    decode: str = DECODERS[0],
    device: Selector = None,
    profile: bool = False,
    progress: Progress | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    pooled: Sequence[str] = (),
    resume: str | os.PathLike[str] | None = None,
    journal: RunStore | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted : str or path
        Files: raw YUV, Y4M, or what FFmpeg reads, pictures and their sequences (``frame_%04d.png``) among them. One of the two
        may be ``-``, raw or Y4M on standard input. URLs of ``s3://``, ``gs://``, ``https://`` and ``file://`` are read as well
        (extra `remote`), but no sequences.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes : {"y", "yuv", "all"}
        Score the luma; all three planes; or these and their mean weighted by area. See `Scorer`.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        Which frames are compared.
    sync : {"index", "pts"}
        Pair frames by their number, or by their presentation time.
    pictures : PictureOptions
        Whether pictures are scaled or cropped first.
    strict : bool
        Raise DemandError where one file is shorter than the other, where frames have no partner or other presentation times,
        and where frame rates differ; otherwise the report has a warning.
    backend : {"vulkan", "cpu"}
        Where scores are computed. It is never another than the one asked for.
    decode : {"cpu", "cuda", "videotoolbox", "d3d11va", "vaapi", "qsv"}
        What decodes containers: the processor, or that hardware, by FFmpeg's name; with ``"cuda"`` the GPU that scores. The
        samples are the same. `ScoreReport.scoring` has the decoder of each clip. InputError is raised for a clip that the
        hardware cannot decode.
    device : int, str, sequence or None
        Index, part of the name, or UUID of the Vulkan device; see `Scorer`. Several devices, ``"all"`` or a list, score ranges
        of frames side by side, each in a process of its own, so that a script needs ``if __name__ == "__main__":``. The report
        is the same.
    profile : bool
        Take the time of each stage, for `ScoreReport.stage_seconds`.
    progress : callable, optional
        Is called after every batch with the number of frames that are done and the number expected, None where that is not
        known.
    on_frames : callable, optional
        Is called with each list of FrameScores as soon as they are scored. Batches are of one frame then, and none waits for
        the next: scores come early, but fewer a second. With several devices they come range by range.
    fail_under : sequence of str
        Raise DemandError where a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.report.thresholds.POOLINGS`). A value that does not exist counts as lower.
    pooled : sequence of str
        Pooled values that will be asked of the report, such as ``"float_ms_ssim:p5"``: OptionError is raised before anything is
        scored where the report will have no such value.
    resume : str or path, optional
        A path beside which scores are kept until the run is done, in ``PATH.journal``, with several devices also in
        ``PATH.parts``. Where an equal run was cut off, this one goes on with what that one left there, also with more devices
        or with fewer, and `ScoreReport.resumed` counts its frames. OptionError is raised where the files there are of another
        run.
    journal : RunStore, optional
        Deprecated, for `resume`.

    Returns
    -------
    ScoreReport
        Scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. Where frames were scored before it went wrong its attribute `report` holds them.

    Notes
    -----
    A device that is lost on the way is opened again, once, and one that runs out of memory gets smaller batches: the files are
    opened again and scored from there on, and the report has a warning. What comes from a pipe cannot be read again.

    """
    thresholds = [*map(parse_threshold, fail_under), *map(parse_pooled, pooled)]
    clips = Clips(os.fspath(reference), os.fspath(distorted), raw)
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend, decode=decode)
    settings = RunSettings(profile, progress, on_frames, thresholds, journal)
    if journal is not None:
        warnings.warn("journal= of score_files is deprecated; resume=PATH does the same", DeprecationWarning, stacklevel=2)
    if resume is None:
        return score_pair(clips, options, device, settings)
    with open_store(resume, clips, options, resume=True, tell=lambda _text: None) as store:
        try:
            report = score_pair(clips, options, device, replace(settings, store=store))
        except VkssimError as error:
            store.settle([error])
            raise
        store.settle([])
        return report
