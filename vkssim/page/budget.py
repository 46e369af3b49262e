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
"""The encodings, tried in this order. A map is half as wide, because its windows of 11x11 have no finer detail."""

_LEAST_MAP = 480  # pixels across: a smaller map is not made smaller still
_MANY = 24  # pictures that are encoded as large as they are; of more, few would fit
_OF_MANY = STEPS.index((960, 90))

_DOWN = 2  # the largest height of a picture, in multiples of its largest width
_PREFIX = "data:image/webp;base64,"


@dataclass(frozen=True)
class Fitted:
    """The pictures that fit, as ``data:`` URIs. The URIs of frames that are left out are empty.

    `kept` has True for each frame that stays, `step` is the encoding of the pictures, and `note` explains both to the user.
    """

    pictures: tuple[str, ...]
    kept: tuple[bool, ...]
    step: Step
    note: str


def first_step(count: int) -> Step:
    """Return the encoding in which so many pictures begin: as large as they are, if these are few."""
    return STEPS[0 if count <= _MANY else _OF_MANY]


class EncodedPictures:
    """Pictures as WebP, each once. Adding the same picture again returns its first number."""

    def __init__(self, step: Step = STEPS[0]) -> None:
        self.step = step
        self._numbers: dict[bytes, int] = {}
        self._encoded: list[tuple[bytes, bool]] = []

    def __len__(self) -> int:
        return len(self._encoded)

    def add(self, picture: npt.NDArray[np.uint8], *, is_map: bool = False) -> int:
        """Add an (H, W, 3) picture, and return its number."""
        widest = min(self.step[0], picture.shape[1])
        widest = max(widest // 2, _LEAST_MAP) if is_map else widest
        digest = hashlib.sha256(repr((picture.shape, is_map)).encode() + np.ascontiguousarray(picture).tobytes()).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._encoded)
            self._encoded.append((encode(picture, widest, self.step[1]), is_map))
        return self._numbers[digest]

    def at(self, step: Step) -> list[bytes]:
        """Return all pictures in the encoding of a step."""
        if step == self.step:
            return [data for data, _ in self._encoded]
        return [_again(data, step[0] // 2 if is_map else step[0], step[1]) for data, is_map in self._encoded]


def fit_pictures(pictures: EncodedPictures, frames: Sequence[Sequence[int]], budget: int) -> Fitted:
    """Return pictures within a budget of bytes. `frames` are the numbers of the pictures of each frame, by importance.

    If the pictures do not fit, they are shrunk step by step. If even the smallest do not fit, the last frames are left out.
    """
    for step in STEPS[STEPS.index(pictures.step) :]:
        encoded = pictures.at(step)
        sizes = [_embedded_size(len(data)) for data in encoded]
        if sum(sizes) <= budget or step == STEPS[-1]:
            break
    kept, used = _that_fit(frames, sizes, budget)
    uris = tuple(data_uri(data) if number in used else "" for number, data in enumerate(encoded))
    return Fitted(uris, tuple(kept), step, _note(step, kept, budget, shrunk=step != pictures.step))


def _that_fit(frames: Sequence[Sequence[int]], sizes: Sequence[int], budget: int) -> tuple[list[bool], set[int]]:
    """Return whether each frame fits, up to the first that does not, and the pictures of the frames that fit."""
    kept: list[bool] = []
    used: set[int] = set()
    for frame in frames:
        more = used.union(frame)
        fits = all(kept) and sum(sizes[number] for number in more) <= budget
        kept.append(fits)
        used = more if fits else used
    return kept, used


def _note(step: Step, kept: Sequence[bool], budget: int, *, shrunk: bool) -> str:
    """Return a note on how the pictures were made to fit; empty if they fit as they were."""
    said = []
    if shrunk:
        said.append(f"To fit into {budget / 1e6:g} MB (--picture-budget), pictures are at most {step[0]} pixels wide.")
    if not all(kept):
        said.append(f"{len(kept) - sum(kept)} of {len(kept)} frames are left out.")
    return " ".join(said)


def encode(picture: npt.NDArray[Any], widest: int, quality: int) -> bytes:
    """Return an (H, W, 3) uint8 picture as WebP, shrunk to at most `widest` pixels across and twice as many down."""
    from PIL import Image

    return _webp(Image.fromarray(picture), widest, quality)


def _again(data: bytes, widest: int, quality: int) -> bytes:
    from PIL import Image

    return _webp(Image.open(io.BytesIO(data)), widest, quality)


def _webp(image: Any, widest: int, quality: int) -> bytes:
    from PIL import Image

    image.thumbnail((widest, _DOWN * widest), Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    image.save(encoded, "WEBP", quality=quality)
    return encoded.getvalue()


def data_uri(data: bytes) -> str:
    """Return WebP as a ``data:`` URI."""
    return _PREFIX + base64.b64encode(data).decode("ascii")


def _embedded_size(size: int) -> int:
    """Return the length of a ``data:`` URI with `size` bytes."""
    return len(_PREFIX) + 4 * -(-size // 3)
