"""Score two video files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from .engine.engine import OnFrames, RunSettings, score_pair
from .engine.journal import open_run_journal
from .engine.options import Clips, ScoreOptions, Selector
from .errors import InterruptedRunError, VkssimError
from .frames.options import PictureOptions, RawDescription, Selection
from .metrics.plane_metrics import feature_texts
from .report.results import ScoreReport
from .report.thresholds import parse_pooled, parse_threshold
from .utils.choices import DECODERS
from .utils.progress import Progress, progress_bar


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
    progress: Progress | bool | None = None,
    on_frames: OnFrames | None = None,
    fail_under: Sequence[str] = (),
    pooled: Sequence[str] = (),
    resume: str | os.PathLike[str] | None = None,
) -> ScoreReport:
    """Score a distorted clip against its reference, frame by frame.

    Parameters
    ----------
    reference, distorted : str or path
        Files, URLs (extra `remote`), or a sequence of pictures (``frame_%04d.png``); docs/input.md lists what is read. One of
        the two may be ``-``, which is raw YUV or Y4M on standard input.
    features : str or sequence of str
        Metrics with their options, such as ``"float_ms_ssim=enable_lcs=true"``.
    planes : {"y", "yuv", "all"}
        Score the luma; all three planes; or these and their mean weighted by area. See `Scorer`.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        The frames to compare.
    sync : {"index", "pts"}
        Pair frames by their number, or by their presentation time.
    pictures : PictureOptions
        The scaling and cropping of pictures before the comparison.
    strict : bool
        Raise ThresholdError if a file is damaged or shorter than the other one, if frames have no partner or differ in
        presentation time, or if frame rates differ. Without it, the report has a warning.
    backend : {"vulkan", "cpu"}
        The backend that computes the scores. No other backend ever replaces it.
    decode : {"auto", "cpu", "cuda", "videotoolbox", "d3d11va", "vaapi", "qsv"}
        The decoder of containers. ``"auto"`` is the GPU that scores for each clip that it can decode, and the CPU for
        every other clip. ``"cpu"`` is the CPU. The others are hardware by FFmpeg's name for it; a clip that it cannot
        decode raises InputError. The samples are the same. `ScoreReport.scoring` names the decoder of each clip.
    device : int, str, sequence or None
        Index, part of the name, or UUID of the Vulkan device; see `Scorer`. Several devices, ``"all"`` or a list, score ranges
        of frames in parallel, each in its own process, so a script needs ``if __name__ == "__main__":``. The report is the
        same.
    profile : bool
        Measure the time of each stage, for `ScoreReport.stage_seconds`.
    progress : bool or callable, optional
        Show a progress bar, in a terminal or in a notebook; or call a function after every batch with the number of finished
        frames and the expected number, which is None if it is not known.
    on_frames : callable, optional
        A function that is called with each list of FrameScores as soon as they are scored. Batches then have one frame each,
        and none waits for the next: each score comes earlier, but fewer come per second. With several devices, the lists come
        range by range.
    fail_under : sequence of str
        Raise ThresholdError if a pooled score is lower: ``"float_ms_ssim=0.98"`` for the mean, ``"float_ms_ssim:p5=0.95"`` for
        another pooled value (`vkssim.report.thresholds.POOLINGS`). A value that does not exist counts as lower.
    pooled : sequence of str
        Pooled values that will be read from the report, such as ``"float_ms_ssim:p5"``. OptionError is raised before anything
        is scored if the report will have no such value.
    resume : str or path, optional
        A path beside which scores are stored until the run is done, in ``PATH.journal``. If an equal run was interrupted, this
        run continues from its scores, also with more or fewer devices, and `ScoreReport.resumed` counts the frames of the
        earlier run. OptionError is raised if the journal belongs to another run.

    Returns
    -------
    ScoreReport
        The scores of every pair of frames.

    Raises
    ------
    VkssimError
        See `vkssim.errors`. If frames were scored before the error, its attribute `report` holds them.
    InterruptedRunError
        Ctrl-C stopped the run. It is a KeyboardInterrupt and no VkssimError, and has such a `report` as well.

    Notes
    -----
    The device stays open for the next call. docs/reliability.md says what happens if it fails during the run.

    """
    thresholds = [*map(parse_threshold, fail_under), *map(parse_pooled, pooled)]
    clips = Clips(os.fspath(reference), os.fspath(distorted), raw)
    options = ScoreOptions(feature_texts(features), planes, selection, sync, pictures, strict, backend, decode=decode)
    with ExitStack() as stack:
        if isinstance(progress, bool):
            progress = stack.enter_context(closing(progress_bar())) if progress else None
        settings = RunSettings(profile, progress, on_frames, thresholds)
        if resume is None:
            return score_pair(clips, options, device, settings)
        journal = stack.enter_context(open_run_journal(resume, clips, options, resume=True, note=lambda _text: None))
        try:
            report = score_pair(clips, options, device, replace(settings, journal=journal))
        except (VkssimError, InterruptedRunError) as error:
            journal.discard_frames([error])
            raise
        journal.discard_frames()
        return report
