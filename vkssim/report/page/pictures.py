"""The pictures of a page: the worst frames of a report and their SSIM maps, small enough to be embedded."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...errors import VkssimError
from ...results import ScoreReport

if TYPE_CHECKING:
    from ...frames.open import RawDescription
    from ...maps import FramePictures

_LARGEST = (960, 1920)  # pixels across and down; six frames of three pictures then stay under 5 MB
_QUALITY = 90  # of WebP: what it loses itself is little beside what is to be seen
_BACKGROUND = 128  # beyond the SSIM map, which has no values within half a window of the border


@dataclass(frozen=True)
class FrameView:
    """One frame as three pictures of the same size, each a ``data:`` URI."""

    index: int
    reference: str
    distorted: str
    ssim_map: str


@dataclass(frozen=True)
class Gallery:
    """The frames shown of one report and the colours of their maps from 0 to 1; where there are none, `reason` says why."""

    frames: tuple[FrameView, ...] = ()
    scale: str = ""
    reason: str = ""


def worst_frames(
    report: ScoreReport, count: int, *, raw: RawDescription, backend: str, device: str | int | None = None, urls: bool = False
) -> Gallery:
    """The `count` worst frames of the clips that a report names, those by URL only with `urls`. Clips that cannot be read are a
    reason, no error.
    """
    if count == 0:
        return Gallery(reason="none were asked for (--worst 0)")
    if not report.reference or not report.distorted:
        return Gallery(reason="the report does not name its clips")
    if "-" in (report.reference, report.distorted):
        return Gallery(reason="one of the clips came from standard input, which cannot be read again")
    from ...maps import choose_frames, colour, scored_pictures

    try:
        indices = choose_frames(report, f"worst:{count}")
        pictures = scored_pictures(report, indices, raw=raw, backend=backend, device=device, urls=urls)
        views = {view.index: view for view in map(frame_view, pictures)}
    except VkssimError as error:
        return Gallery(reason=str(error))
    colours = colour(np.linspace(0, 1, 256, dtype=np.float32)[None])
    return Gallery(tuple(views[index] for index in indices), encode(colours))


def frame_view(pictures: FramePictures) -> FrameView:
    """A frame's pictures, encoded. The map gets a border, so that it lies over the other two point for point."""
    from ...maps import colour

    coloured = colour(pictures.ssim_map)
    rows, columns = ((full - part) // 2 for full, part in zip(pictures.reference.shape[:2], coloured.shape[:2], strict=True))
    padded = np.pad(coloured, ((rows, rows), (columns, columns), (0, 0)), constant_values=_BACKGROUND)
    return FrameView(pictures.index, encode(pictures.reference), encode(pictures.distorted), encode(padded))


def encode(picture: npt.NDArray[Any]) -> str:
    """(H, W, 3) uint8 as the ``data:`` URI of a WebP picture, at most `_LARGEST`."""
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail(_LARGEST, Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", quality=_QUALITY)
    return "data:image/webp;base64," + base64.b64encode(encoded.getvalue()).decode("ascii")
