"""Collect the pictures of a page: the worst moments of its clips and their SSIM maps, every picture once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import VkssimError
from ..report.results import ScoreReport
from . import PICTURE_BUDGET
from .budget import EncodedPictures, Step, data_uri, encode, first_step, fit_pictures
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
    """All pictures of a page, as ``data:`` URIs.

    `scale` has the colours of the maps from 0 to 1. `reasons` say, by the number of a clip, why it has no pictures. `note` says
    how the pictures were fitted into their budget.
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

    Clips of one reference show the same frames, so that they can be compared: see `moments.shared_moments`. Clips by URL are
    read only with `urls`. A clip that cannot be read adds a reason and raises no error. All pictures together take at most
    `budget` bytes.
    """
    if count == 0:
        return no_pictures(reports, "they are switched off (`worst=0`); a larger number gives so many")
    collected = _Collected(first_step(count * (1 + len(reports))))
    for clips in alike(reports):
        readable = [number for number in clips if collected.accepts(number, reports[number])]
        indices = shared_moments([reports[number] for number in readable], count)
        for number in readable:
            scored = {frame.index for frame in reports[number].frames}
            chosen = [index for index in indices if index in scored]
            collected.read(number, reports[number], chosen, raw=raw, backend=backend, device=device, urls=urls)
        collected.end_group(indices)
    return collected.gallery(budget)


@dataclass
class _OpenGroup:
    """Clips that so far have the same pictures of the reference; `references` and `views` are by the numbers of frames."""

    references: dict[int, int] = field(default_factory=dict)
    views: dict[int, list[ClipView]] = field(default_factory=dict)
    clips: list[int] = field(default_factory=list)

    def fits(self, references: dict[int, int]) -> bool:
        """Return whether a clip with these pictures of the reference belongs to the group."""
        return all(self.references.get(index, place) == place for index, place in references.items())

    def add(self, clip: int, references: dict[int, int], views: dict[int, ClipView]) -> None:
        """Add a clip."""
        self.clips.append(clip)
        self.references.update(references)
        for index, view in views.items():
            self.views.setdefault(index, []).append(view)


class _Collected:
    """The pictures that were read so far, and their frames."""

    def __init__(self, step: Step) -> None:
        self._pictures = EncodedPictures(step)
        self._groups: list[FrameGroup] = []
        self._open: list[_OpenGroup] = []
        self._reasons: dict[int, str] = {}

    def accepts(self, number: int, report: ScoreReport) -> bool:
        """Return whether the clips of a report can be read, and store the reason if they cannot."""
        reason = _unreadable(report)
        if reason:
            self._reasons[number] = reason
        return not reason

    def read(self, number: int, report: ScoreReport, indices: Sequence[int], **how: Any) -> None:
        """Read frames of a clip. The clip joins the group of clips with the same pictures of the reference."""
        from ..maps.frames import scored_pictures

        references, views = {}, {}
        try:
            for frame in scored_pictures(report, sorted(indices), **how):
                references[frame.index] = self._pictures.add(frame.reference)
                distorted, ssim_map = self._pictures.add(frame.distorted), self._pictures.add(padded_map(frame), is_map=True)
                views[frame.index] = ClipView(number, distorted, ssim_map)
        except VkssimError as error:
            self._reasons[number] = str(error)
            return
        group = next((group for group in self._open if group.fits(references)), None)
        if group is None:
            group = _OpenGroup()
            self._open.append(group)
        group.add(number, references, views)

    def end_group(self, indices: Sequence[int]) -> None:
        """Sort the frames of the clips that were read since the last call, the worst first."""
        for group in self._open:
            shown = [index for index in indices if index in group.references]
            frames = tuple(FrameView(index, group.references[index], tuple(group.views[index])) for index in shown)
            self._groups.append(FrameGroup(tuple(group.clips), frames))
        self._open = []

    def gallery(self, budget: int) -> Gallery:
        """Return all pictures, within a budget of bytes."""
        if not any(group.frames for group in self._groups):
            return Gallery(reasons=self._reasons)
        order = _by_rank(self._groups)
        fit = fit_pictures(self._pictures, [frame.pictures for _, frame in order], budget)
        kept = [(group, frame) for (group, frame), stays in zip(order, fit.kept, strict=True) if stays]
        groups = tuple(
            FrameGroup(group.clips, tuple(frame for number, frame in kept if number == place))
            for place, group in enumerate(self._groups)
        )
        for group in groups:
            for clip in group.clips if not group.frames else ():
                self._reasons[clip] = "they did not fit into the budget; a larger one (`budget`) gives them"
        scale = data_uri(encode(_colours(), *fit.step))
        return Gallery(fit.pictures, tuple(group for group in groups if group.frames), scale, self._reasons, fit.note)


def _unreadable(report: ScoreReport) -> str:
    """Return why the clips of a report cannot be read again; empty if reading can be tried."""
    if not report.frames and report.frame_count:
        return "there are pooled scores only; `vkssim batch --frames FOLDER` stores those of each frame too, which choose them"
    if not report.frames or not report.names:
        return "the report has no scores of frames"
    if not report.reference or not report.distorted:
        return "the report does not name its clips; the JSON of `vkssim score` does"
    if "-" in (report.reference, report.distorted):
        return "one of the clips came from standard input, which cannot be read again; score it from a file"
    return ""


def _by_rank(groups: Sequence[FrameGroup]) -> list[tuple[int, FrameView]]:
    """Return all frames with the number of their group: the first frame of each group before the second of any group."""
    deepest = max(len(group.frames) for group in groups)
    return [
        (number, group.frames[rank])
        for rank in range(deepest)
        for number, group in enumerate(groups)
        if rank < len(group.frames)
    ]


def padded_map(pictures: FramePictures) -> npt.NDArray[np.uint8]:
    """Return the map of a frame in colours, (H, W, 3) uint8, with a border that gives it the size of the pictures."""
    from ..maps.frames import colour

    coloured = colour(pictures.ssim_map)
    borders = []
    for full, part in zip(pictures.reference.shape[:2], coloured.shape[:2], strict=True):
        before = (full - part) // 2
        borders.append((before, full - part - before))  # an even window makes one border wider
    return np.pad(coloured, (*borders, (0, 0)), constant_values=_BACKGROUND)


def _colours() -> npt.NDArray[np.uint8]:
    """Return the colours of the maps from 0 to 1, (1, 256, 3) uint8."""
    from ..maps.frames import colour

    return colour(np.linspace(0, 1, 256, dtype=np.float32)[None])
