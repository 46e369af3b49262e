"""Prepare the worst moments for the page: each picture appears once, and its repetitions are replaced by a reference to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..report.results import ScoreReport
from .moments import MomentGroup, moment_group
from .pictures import FrameGroup, FrameView, Gallery
from .tables import score_text


@dataclass(frozen=True)
class PageFigure:
    """A picture at one position of the page.

    `picture` is its number. If the picture appears elsewhere, `uri` is empty and `where` names the frame at which it appears.
    """

    picture: int
    uri: str
    where: str = ""


@dataclass(frozen=True)
class FrameClip:
    """A clip in one frame, with its scores as (name, text)."""

    clip: int
    distorted: PageFigure
    ssim_map: PageFigure
    scores: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class PageFrame:
    """A frame. `worst` is the clip with the lowest score in it, and `score` that score, in the metric of the group."""

    index: int
    time: str
    reference: PageFigure
    clips: tuple[FrameClip, ...]
    worst: int
    score: str


@dataclass(frozen=True)
class PageGroup:
    """Clips that can be compared frame by frame, by their numbers.

    `listed` are their worst moments, in the order of the frames.
    """

    reference: str
    listed: MomentGroup
    clips: tuple[int, ...]
    frames: tuple[PageFrame, ...]


def frame_groups(reports: Sequence[ScoreReport], gallery: Gallery, metrics: Sequence[str]) -> list[PageGroup]:
    """Return the frames of a gallery with all texts that the page shows about them."""
    places: dict[int, str] = {}
    return [_group(reports, gallery, group, metrics, places) for group in gallery.groups]


def _group(
    reports: Sequence[ScoreReport], gallery: Gallery, group: FrameGroup, metrics: Sequence[str], places: dict[int, str]
) -> PageGroup:
    listed = moment_group(reports, group.clips, [view.index for view in group.frames])
    moments = {moment.index: moment for moment in listed.moments}
    frames = {clip: {frame.index: frame for frame in reports[clip].frames} for clip in group.clips}

    def figure(picture: int, where: str) -> PageFigure:
        if picture in places:
            return PageFigure(picture, "", places[picture])
        places[picture] = where
        return PageFigure(picture, gallery.pictures[picture])

    def page_frame(view: FrameView) -> PageFrame:
        where = f"frame {view.index}"
        reference = figure(view.reference, where)
        clips = []
        for seen in view.clips:
            scored = frames[seen.clip][view.index].metrics
            scores = tuple((name, score_text(scored[name])) for name in metrics if name in scored)
            clips.append(FrameClip(seen.clip, figure(seen.distorted, where), figure(seen.ssim_map, where), scores))
        moment = moments[view.index]
        return PageFrame(view.index, moment.time, reference, tuple(clips), moment.clip, moment.score)

    return PageGroup(reports[group.clips[0]].reference, listed, group.clips, tuple(map(page_frame, group.frames)))
