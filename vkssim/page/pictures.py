"""Collect the pictures of a page: the worst moments of its clips and their SSIM maps, every picture once, within a budget."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import VkssimError
from ..report.results import ScoreReport
from . import PICTURE_BUDGET
from .moments import alike, shared_moments

if TYPE_CHECKING:
    from ..frames.options import RawDescription
    from ..maps.frames import FramePictures

Step = tuple[int, int]
"""The largest width of a picture in pixels, and the quality of WebP."""

STEPS: tuple[Step, ...] = ((4096, 90), (1920, 90), (1920, 80), (960, 90), (960, 80), (720, 80), (480, 75))
"""The encodings, tried in this order. Maps have fewer pixels; see `_width`."""

_MIN_MAP = 480  # pixels across: below it, only the budget makes a map smaller
_MANY = 24  # with more pictures, a page begins with smaller ones: few would fit in full size
_OF_MANY = STEPS.index((960, 90))
_DOWN = 2  # the largest height of a picture, in multiples of its largest width
_BACKGROUND = 128  # grey border of the SSIM map, which has no values within half a window of the edge


_Joined = tuple[list[int], dict[int, "FrameView"]]  # clips with the same pictures of the reference, and their frames


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
    """All pictures of a page, as ``data:`` URIs."""

    pictures: tuple[str, ...] = ()
    groups: tuple[FrameGroup, ...] = ()
    scale: str = ""
    """The colours of the maps from 0 to 1."""
    reasons: dict[int, str] = field(default_factory=dict)
    """Why a clip has no pictures, by the number of the clip."""
    note: str = ""
    """How the pictures fit into the budget."""


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
    """Return pictures of `count` of the `shared_moments` of each reference, which take at most `budget` bytes together.

    A clip that cannot be read adds a reason and raises no error. Clips by URL are read only with `urls`.
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
        for alike_clips, frames in joined:
            groups.append(FrameGroup(tuple(alike_clips), tuple(frames[index] for index in indices if index in frames)))
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
    rests = np.subtract(pictures.reference.shape[:2], coloured.shape[:2])
    borders = [(rest // 2, rest - rest // 2) for rest in rests.tolist()]  # an even window makes one border wider
    return np.pad(coloured, (*borders, (0, 0)), constant_values=_BACKGROUND)


# -- the budget -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fitted:
    """The pictures that fit, as ``data:`` URIs, empty for frames that are not `kept`, and a note that tells the user why."""

    pictures: tuple[str, ...]
    kept: tuple[bool, ...]
    step: Step
    note: str


class EncodedPictures:
    """Pictures as WebP, each once: as large as they are, if a page has few. Adding a picture again returns its first number."""

    def __init__(self, count: int = 0) -> None:
        self.step = STEPS[0 if count <= _MANY else _OF_MANY]
        self._numbers: dict[bytes, int] = {}
        self._encoded: list[tuple[bytes, int, bool]] = []  # each with its full width, and whether it is a map

    def add(self, picture: npt.NDArray[np.uint8], *, is_map: bool = False) -> int:
        """Add an (H, W, 3) picture, and return its number."""
        digest = hashlib.sha256(repr((picture.shape, is_map)).encode() + np.ascontiguousarray(picture).tobytes()).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._encoded)
            full = picture.shape[1]
            self._encoded.append((encode(picture, _width(self.step, full, is_map=is_map), self.step[1]), full, is_map))
        return self._numbers[digest]

    def at(self, step: Step) -> list[str]:
        """Return all pictures in the encoding of a step, as ``data:`` URIs."""
        from PIL import Image

        if step == self.step:
            return [data_uri(data) for data, *_ in self._encoded]
        return [
            data_uri(encode(np.asarray(Image.open(io.BytesIO(data))), _width(step, full, is_map=is_map), step[1]))
            for data, full, is_map in self._encoded
        ]


def _width(step: Step, full: int, *, is_map: bool) -> int:
    """Return the largest width at a step for a picture that is `full` pixels wide.

    A map has half the width, because its windows of 11x11 samples have no finer detail.
    """
    return min(step[0] // 2, max(full // 2, _MIN_MAP)) if is_map else min(step[0], full)


def fit_pictures(pictures: EncodedPictures, frames: Sequence[Sequence[int]], budget: int) -> Fitted:
    """Return pictures within a budget of bytes. `frames` are the numbers of the pictures of each frame, by importance."""
    for step in STEPS[STEPS.index(pictures.step) :]:
        uris = pictures.at(step)
        if sum(map(len, uris)) <= budget or step == STEPS[-1]:
            break
    kept: list[bool] = []
    used: set[int] = set()
    for frame in frames:
        more = used.union(frame)
        kept.append(all(kept) and sum(len(uris[number]) for number in more) <= budget)
        used = more if kept[-1] else used
    notes = []
    if step != pictures.step:
        notes.append(f"To fit into {budget / 1e6:g} MB (--picture-budget), pictures are at most {step[0]} pixels wide.")
    if not all(kept):
        notes.append(f"{len(kept) - sum(kept)} of {len(kept)} frames are left out.")
    fitting = (uri if number in used else "" for number, uri in enumerate(uris))
    return Fitted(tuple(fitting), tuple(kept), step, " ".join(notes))


def encode(picture: npt.NDArray[Any], widest: int, quality: int) -> bytes:
    """Return an (H, W, 3) uint8 picture as WebP, shrunk to at most `widest` pixels across and twice as many down."""
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((widest, _DOWN * widest), Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", quality=quality)
    return encoded.getvalue()


def data_uri(data: bytes) -> str:
    """Return WebP as a ``data:`` URI."""
    return "data:image/webp;base64," + base64.b64encode(data).decode("ascii")
