"""Fit pictures into a number of bytes: encode each once, then shrink them or leave some out until they fit."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Step = tuple[int, int]
"""The largest width of a picture in pixels, and the quality of WebP."""

STEPS: tuple[Step, ...] = ((4096, 90), (1920, 90), (1920, 80), (960, 90), (960, 80), (720, 80), (480, 75))
"""The encodings, tried in this order. Maps have fewer pixels; see `_width`."""

_MIN_MAP = 480  # pixels across: below it, only the budget makes a map smaller
_MANY = 24  # with more pictures, a page begins with smaller ones: few would fit in full size
_OF_MANY = STEPS.index((960, 90))
_DOWN = 2  # the largest height of a picture, in multiples of its largest width


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
        uris = []
        for data, full, is_map in self._encoded:
            picture = np.asarray(Image.open(io.BytesIO(data)))
            uris.append(data_uri(encode(picture, _width(step, full, is_map=is_map), step[1])))
        return uris


def _width(step: Step, full: int, *, is_map: bool) -> int:
    """Return the largest width at a step for a picture that is `full` pixels wide.

    A map has half the width of its clip, because its windows of 11x11 samples have no finer detail, but not less than
    `_MIN_MAP`, because smaller maps are hard to read. If bytes have to be saved, it has half the width of the step all the
    same: larger maps would cost whole frames.
    """
    if is_map:
        return min(step[0] // 2, max(full // 2, _MIN_MAP))
    return min(step[0], full)


def fit_pictures(pictures: EncodedPictures, frames: Sequence[Sequence[int]], budget: int) -> Fitted:
    """Return pictures within a budget of bytes. `frames` are the numbers of the pictures of each frame, by importance.

    If the pictures do not fit, they are shrunk step by step. If even the smallest do not fit, the last frames are left out.
    """
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
