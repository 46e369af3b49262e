"""Collect the pictures of a page: the worst moments of its clips and their SSIM maps, every picture once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import VkssimError
from ..report.results import ScoreReport
from . import PICTURE_BUDGET
from .budget import EncodedPictures, data_uri, encode, fit_pictures
from .moments import alike, shared_moments

if TYPE_CHECKING:
    from ..frames.options import RawDescription
    from ..maps.frames import FramePictures

_BACKGROUND = 128  # grey border of the SSIM map, which has no values within half a window of the edge


@dataclass(frozen=True)
class ClipView:
    """A frame of a distorted clip: the number of the clip, and the indices of its two pictures in `Gallery.pictures`."""

    clip: int
    distorted: int
    ssim_map: int


@dataclass(frozen=True)
class FrameView:
    """A frame in all clips that were scored in it; `reference` is an index in `Gallery.pictures`."""

    index: int
    reference: int
    clips: tuple[ClipView, ...]

    @property
    def pictures(self) -> tuple[int, ...]:
        """Return all pictures of the frame."""
        return self.reference, *(place for view in self.clips for place in (view.distorted, view.ssim_map))


@dataclass(frozen=True)
class FrameGroup:
    """Clips whose frames of one number show the same picture of the reference, and their frames, the worst first."""

    clips: tuple[int, ...]
    frames: tuple[FrameView, ...]


@dataclass(frozen=True)
class Gallery:
    """All pictures of a page, as ``data:`` URIs; `scale` has the colours of the maps from 0 to 1.

    `reasons` say why a clip has no pictures, by the number of the clip, and `note` how the pictures fit into the budget.
    """

    pictures: tuple[str, ...] = ()
    groups: tuple[FrameGroup, ...] = ()
    scale: str = ""
    reasons: dict[int, str] = field(default_factory=dict)
    note: str = ""


def no_pictures(reports: Sequence[ScoreReport], reason: str) -> Gallery:
    """Return a gallery without pictures, with the same reason for every clip."""
    return Gallery(reasons=dict.fromkeys(range(len(reports)), reason))


def worst_frames(
    reports: Sequence[ScoreReport],
    count: int,
    *,
    raw: RawDescription,
    backend: str,
    device: str | int | None = None,
    urls: bool = False,
    budget: int = PICTURE_BUDGET,
) -> Gallery:
    """Return the frames of the worst moments of the clips that reports name, `count` of each reference.

    They are those of `moments.shared_moments`. A clip that cannot be read adds a reason and raises no error. Clips by URL are
    read only with `urls`. All pictures together take at most `budget` bytes.
    """
    if count == 0:
        return no_pictures(reports, "they are switched off (`worst=0`); a larger number shows that many")
    pictures = EncodedPictures(count * (1 + len(reports)))
    groups: list[FrameGroup] = []
    reasons: dict[int, str] = {}
    for clips in alike(reports):
        reasons |= {number: reason for number in clips if (reason := _unreadable(reports[number]))}
        readable = [number for number in clips if number not in reasons]
        indices = shared_moments([reports[number] for number in readable], count)
        joined: list[_Joined] = []
        for number in readable:
            chosen = set(indices).intersection(frame.index for frame in reports[number].frames)
            try:
                views = _read(pictures, number, reports[number], chosen, raw=raw, backend=backend, device=device, urls=urls)
            except VkssimError as error:
                reasons[number] = str(error)
                continue
            _join(joined, number, views)
        for joined_clips, frames in joined:
            groups.append(FrameGroup(tuple(joined_clips), tuple(frames[index] for index in indices if index in frames)))
    return _fitted(pictures, groups, reasons, budget)


def _read(pictures: EncodedPictures, clip: int, report: ScoreReport, indices: set[int], **how: Any) -> dict[int, FrameView]:
    """Add the pictures of frames of a clip, and return the frames by their numbers. Raises VkssimError."""
    from ..maps.frames import scored_pictures

    views = {}
    for frame in scored_pictures(report, indices, **how):
        reference, distorted = pictures.add(frame.reference), pictures.add(frame.distorted)
        view = ClipView(clip, distorted, pictures.add(padded_map(frame), is_map=True))
        views[frame.index] = FrameView(frame.index, reference, (view,))
    return views


_Joined = tuple[list[int], dict[int, FrameView]]
"""Clips with the same pictures of the reference, and their frames."""


def _join(joined: list[_Joined], clip: int, views: dict[int, FrameView]) -> None:
    """Add a clip to the clips with the same pictures of the reference, or as the first one of its kind."""
    for clips, frames in joined:
        if all(frames.get(index, view).reference == view.reference for index, view in views.items()):
            clips.append(clip)
            for index, view in views.items():
                earlier = frames[index].clips if index in frames else ()
                frames[index] = replace(view, clips=(*earlier, *view.clips))
            return
    joined.append(([clip], views))


def _fitted(pictures: EncodedPictures, groups: Sequence[FrameGroup], reasons: dict[int, str], budget: int) -> Gallery:
    """Return all pictures, within a budget of bytes: the first frame of each group before the second of any group."""
    if not any(group.frames for group in groups):
        return Gallery(reasons=reasons)
    from ..maps.frames import colour

    order = sorted((rank, number) for number, group in enumerate(groups) for rank in range(len(group.frames)))
    fit = fit_pictures(pictures, [groups[number].frames[rank].pictures for rank, number in order], budget)
    kept = {place for place, stays in zip(order, fit.kept, strict=True) if stays}
    fitting = []
    for number, group in enumerate(groups):
        frames = tuple(frame for rank, frame in enumerate(group.frames) if (rank, number) in kept)
        if frames:
            fitting.append(FrameGroup(group.clips, frames))
        else:
            reasons |= dict.fromkeys(group.clips, "they did not fit into the budget; a larger one (`budget`) has room for them")
    colours = colour(np.linspace(0, 1, 256, dtype=np.float32)[None])  # of the maps from 0 to 1
    return Gallery(fit.pictures, tuple(fitting), data_uri(encode(colours, *fit.step)), reasons, fit.note)


def _unreadable(report: ScoreReport) -> str:
    """Return why the clips of a report cannot be read again; empty if reading can be tried."""
    if not report.frames and report.frame_count:
        return "it has only pooled scores; pictures are chosen by scores of frames, which `vkssim batch --frames FOLDER` stores"
    if not report.frames or not report.names:
        return "the report has no scores of frames"
    if not report.reference or not report.distorted:
        return "the report does not name its clips; the JSON of `vkssim score` does"
    if "-" in (report.reference, report.distorted):
        return "one of the clips came from standard input, which cannot be read again; score it from a file"
    return ""


def padded_map(pictures: FramePictures) -> npt.NDArray[np.uint8]:
    """Return the map of a frame in colours, (H, W, 3) uint8, with a border that gives it the size of the pictures."""
    from ..maps.frames import colour

    coloured = colour(pictures.ssim_map)
    borders = []
    for full, part in zip(pictures.reference.shape[:2], coloured.shape[:2], strict=True):
        before = (full - part) // 2
        borders.append((before, full - part - before))  # an even window makes one border wider
    return np.pad(coloured, (*borders, (0, 0)), constant_values=_BACKGROUND)
