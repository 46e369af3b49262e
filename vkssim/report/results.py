"""The results of a run: the scores of each frame, pooled values and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import OptionError
from ..frames.options import PictureOptions, Selection
from ..types import BackendInfo, Doubles
from ..utils.sanitize import visible
from ..utils.values import to_json
from ..utils.version import __version__
from ..utils.wording import counted
from .numbers import NumberFormat
from .record import ScoringRecord
from .schema import REPORT_KEYS

PERCENTILES = (1, 5, 10, 50)
_HTML_POOLINGS = ("mean", "min", "p5", "p50", "max")
_CHART_WIDTH, _CHART_HEIGHT = 240, 32
_METRICS_OF_CHOICE = ("float_ms_ssim", "float_ssim")


def merged_info(infos: Sequence[BackendInfo]) -> BackendInfo:
    """Return one description for scores of several devices, which names each device and each driver once."""
    devices, drivers = ({name for info in infos for name in getattr(info, key).split("; ")} for key in ("device", "driver"))
    return replace(infos[0], device="; ".join(sorted(devices)), driver="; ".join(sorted(drivers)))


@dataclass(frozen=True, slots=True)
class FrameScores:
    """The scores of one frame.

    Parameters
    ----------
    index : int
        The number of the pair, counted from 0.
    metrics : mapping of str to float
        The score of each metric, NaN if it does not exist.
    time : float, optional
        The presentation time of the reference's frame, in seconds from its first frame; None if it is unknown.

    """

    index: int
    metrics: Mapping[str, float]
    time: float | None = None


def rows(
    columns: Mapping[str, Doubles], numbers: Iterable[int], times: Iterable[float | None] | None = None
) -> list[FrameScores]:
    """Return the FrameScores of each frame from columns of scores. Without `times`, the frames have no time."""
    values = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    return [
        FrameScores(number, dict(zip(columns, row, strict=True)), time)
        for number, row, time in zip(numbers, values, times or [None] * len(values), strict=True)
    ]


@dataclass(repr=False)
class ScoreReport:
    """The scores of a pair of clips, and how they were scored. A notebook shows them as a table, with a chart of each score.

    Parameters
    ----------
    reference, distorted : str
        The clips, by path or URL.
    width, height : int
        Size in samples of the frames that were compared.
    bits : int
        Depth of the frames that were compared, in bits.
    names : tuple of str
        The names of the scores that each frame has.
    backend : BackendInfo
        The backend that computed them, its device and its driver.
    frames : list of FrameScores
        The frames that were scored, in order. A score that does not exist is NaN, and one in dB may be infinite.
    warnings : list of str
        Messages about circumstances that may make the scores misleading.
    notes : list of str
        Messages about the preprocessing of the pictures before they were compared.
    rate : float, optional
        Frame rate of the reference, in frames a second; None if it is unknown.
    selection : Selection
        The frames that were compared.
    sync : {"index", "pts"}
        The way in which frames were paired.
    pictures : PictureOptions
        The preprocessing that was requested.
    version : str
        The version of vkssim that scored the clips.
    scoring : ScoringRecord, optional
        Everything that the scores depend on; None for reports of other tools.
    seconds : float
        Time from the first frame that was read to the last that was scored.
    stage_seconds : mapping of str to float
        Time of each stage in seconds; empty if it was not measured.
    similarities : tuple of str
        The entries of `names` that are metrics themselves, not terms of one: 1 for identical frames, and not in dB.
    resumed : int
        The number of frames that an earlier run had scored. `seconds` does not count their time.
    worker_warnings : list of str
        Messages about devices that failed while others did their work. No file contains them.
    unequal : str, optional
        A message if the clips differ in length or frame rate. No file contains it.

    """

    reference: str
    distorted: str
    width: int
    height: int
    bits: int
    names: tuple[str, ...]
    backend: BackendInfo
    frames: list[FrameScores] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rate: float | None = None
    selection: Selection = field(default_factory=Selection)
    sync: str = "index"
    pictures: PictureOptions = field(default_factory=PictureOptions)
    version: str = __version__
    scoring: ScoringRecord | None = None
    seconds: float = 0.0
    stage_seconds: Mapping[str, float] = field(default_factory=dict)
    similarities: tuple[str, ...] = ()
    resumed: int = 0
    worker_warnings: list[str] = field(default_factory=list)
    unequal: str | None = None

    def __repr__(self) -> str:
        means = (f"{name} {pooled.get('mean', np.nan):.6f}" for name, pooled in self.pooled().items())
        return f"<{type(self).__name__}: {self.title}\n mean {', '.join(means) or 'of no frame'}>"

    def _repr_html_(self) -> str:
        """Return the report as HTML for the output of a notebook's cell: a table of pooled scores, each with a small chart."""
        heads = "".join(f"<th>{text}</th>" for text in ("score", *_HTML_POOLINGS, "over the frames"))
        rows = []
        for name, pooled in self.pooled().items():
            values = [pooled.get(pooling, np.nan) for pooling in _HTML_POOLINGS]
            numbers = [f"{value:.6f}" if np.isfinite(value) else str(value) for value in values]
            cells = escape(visible(name)), *numbers, _html_chart(self.column(name)) if self.frames else ""
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        warnings = "".join(f"<li>{escape(visible(text))}</li>" for text in self.warnings)
        title, body = escape(visible(self.title)), "".join(rows)
        return f"<p>{title}</p><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table><ul>{warnings}</ul>"

    @property
    def title(self) -> str:
        """Return a line that names the clips, and the number and the format of the frames."""
        frames = f"{counted(self.frame_count, 'frame')} of {self.width}x{self.height}, {self.bits} bit"
        return f"{self.distorted} against {self.reference}, {frames}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, with the keys of its JSON.

        Returns
        -------
        dict of str to Any
            The values that `vkssim.report.render` writes as JSON, without rounding. A score that does not exist is None.

        """
        return as_dict(self, NumberFormat(None))

    def to_pandas(self) -> Any:
        """Return the scores of the frames as a table of pandas, which must be installed.

        Returns
        -------
        pandas.DataFrame
            A row for each frame, with the number of the frame as its index; the columns are ``time``, in seconds, NaN if it is
            unknown, and the scores.

        Raises
        ------
        OptionError
            pandas is not installed.

        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError as error:
            raise OptionError(f"to_pandas needs pandas ({error}); `pip install pandas` installs it") from None
        times = np.array([frame.time for frame in self.frames], np.float64)
        columns = {"time": times, **{name: self.column(name) for name in self.names}}
        return pandas.DataFrame(columns, index=pandas.Index([frame.index for frame in self.frames], name="frame"))

    @property
    def frame_count(self) -> int:
        """Return how many frames were scored."""
        return len(self.frames)

    @property
    def fps(self) -> float:
        """Return the number of frames that were scored in a second."""
        return (len(self.frames) - self.resumed) / self.seconds if self.seconds > 0 else 0.0

    @property
    def profiled_fps(self) -> float:
        """Return `fps` if the stages were timed, otherwise 0, so that files do not depend on the speed of the device."""
        return self.fps if self.stage_seconds else 0.0

    def column(self, name: str) -> Doubles:
        """Return one score of all frames.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        (frames,) array of float64
            The score of each frame, NaN if it does not exist.

        Raises
        ------
        KeyError
            No score of that name was computed.

        """
        return np.array([frame.metrics[name] for frame in self.frames], np.float64)

    def pooled(self) -> dict[str, dict[str, float]]:
        """Return the pooled values of each score.

        Returns
        -------
        dict of str to dict of str to float
            For each score ``min``, ``max``, ``mean`` and ``harmonic_mean``, as libvmaf pools them, ``stddev``, the percentiles
            ``p1``, ``p5``, ``p10`` and ``p50``, and for similarities ``mean_db``. If one frame has no score, the values are
            NaN, because a mean over the other frames would look better than the clip is. Empty if there are no frames.

        Notes
        -----
        harmonic_mean = n / sum(1 / (s + 1)) - 1, and mean_db = -10 log10(1 - mean), which is infinite for identical clips.

        """
        if not self.frames:
            return {}
        pooled = {name: pool(self.column(name)) for name in self.names}
        for name in self.similarities:
            pooled[name]["mean_db"] = float(decibel(np.array(pooled[name]["mean"])))
        return pooled


def as_dict(report: ScoreReport, numbers: NumberFormat) -> dict[str, Any]:
    """Return the values of a report's JSON. A score that does not exist is None."""

    def scores(values: Mapping[str, float]) -> dict[str, float | None]:
        return {name: numbers.number(value) for name, value in values.items()}

    computed = {
        "fps": round(report.profiled_fps, 2),
        "frames": [
            {
                "frameNum": frame.index,
                **({} if frame.time is None else {"time": round(frame.time, 6)}),
                "metrics": scores(frame.metrics),
            }
            for frame in report.frames
        ],
        "pooled_metrics": {name: scores(pooled) for name, pooled in report.pooled().items()},
        "aggregate_metrics": {},
    }
    values = {key: attrgetter(place)(report) if place else computed[key] for key, (_, place) in REPORT_KEYS.items()}
    return values if report.scoring is None else {**values, "scoring": to_json(report.scoring)}


def _html_chart(scores: Doubles) -> str:
    """Return a line of the scores from their lowest to their highest, with gaps in place of those that are not finite."""
    finite = np.isfinite(scores)
    if not finite.any():
        return ""
    lowest, highest = scores[finite].min(), scores[finite].max()
    heights = (scores - lowest) / max(highest - lowest, 1e-12)
    points = np.column_stack([np.linspace(0, _CHART_WIDTH, len(scores)), (1 - heights) * (_CHART_HEIGHT - 2) + 1])
    runs = np.split(np.arange(len(scores)), np.nonzero(np.diff(finite))[0] + 1)
    lines = "".join(
        f'<polyline fill="none" stroke="currentColor" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points[run])}"/>'
        for run in runs
        if finite[run[0]]
    )
    return f'<svg width="{_CHART_WIDTH}" height="{_CHART_HEIGHT}" role="img" aria-label="scores of the frames">{lines}</svg>'


@dataclass(repr=False)
class PooledReport(ScoreReport):
    """A report without its frames. `values` are the pooled values of each score, and `count` is the number of frames."""

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    count: int = 0

    @property
    def frame_count(self) -> int:
        """Return how many frames were scored."""
        return self.count

    def pooled(self) -> dict[str, dict[str, float]]:
        """Return the pooled values; see `ScoreReport.pooled`."""
        return {name: dict(values) for name, values in self.values.items()}


def decibel(similarity: Doubles) -> Doubles:
    """Return -10 log10(1 - similarity): infinite for 1, NaN for NaN. A value above 1, caused by rounding, counts as 1."""
    with np.errstate(divide="ignore"):
        values: Doubles = -10 * np.log10(np.maximum(0.0, 1 - similarity))
    return values


def pool(scores: Doubles) -> dict[str, float]:
    """Return the pooled values of one score over (frames,) frames; see ScoreReport.pooled."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = {
            "min": scores.min(),
            "max": scores.max(),
            "mean": scores.mean(),
            "harmonic_mean": len(scores) / np.sum(1.0 / (scores + 1.0)) - 1.0,
            "stddev": scores.std(),
        }
        values.update(zip((f"p{rank}" for rank in PERCENTILES), _percentiles(scores), strict=True))
    return {name: float(value) for name, value in values.items()}


def _percentiles(scores: Doubles) -> Doubles:
    """Return the percentiles of PERCENTILES, interpolated between the two nearest scores."""
    percentiles = np.percentile(scores, PERCENTILES)
    if not np.isposinf(scores).any():
        return percentiles
    # Identical frames have an infinite score in dB, with which NumPy's interpolation gives NaN.
    lower, higher = (np.percentile(scores, PERCENTILES, method=method) for method in ("lower", "higher"))
    return np.where((lower == higher) | np.isposinf(higher), higher, percentiles)


def worst_frames(report: ScoreReport, name: str, count: int) -> list[FrameScores]:
    """Return the frames with the lowest scores, the worst first.

    Parameters
    ----------
    report : ScoreReport
        The report.
    name : str
        The score by which frames are sorted, one of `report.names`.
    count : int
        The largest number of frames to return.

    Returns
    -------
    list of FrameScores
        Frames without a score come before all others, and of equal frames the earlier one comes first.

    Raises
    ------
    KeyError
        No score of that name was computed.

    """
    return sorted(report.frames, key=lambda frame: without_nan(frame.metrics[name]))[:count]


def without_nan(score: float) -> float:
    """Return a score, or a value below all scores if it is NaN."""
    return -math.inf if math.isnan(score) else score


def metric_of_choice(report: ScoreReport) -> str:
    """Return the score by which the worst frames of a report are chosen. The report has to have scores."""
    return next((name for name in _METRICS_OF_CHOICE if name in report.names), report.names[0])
