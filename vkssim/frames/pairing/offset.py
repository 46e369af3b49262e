"""Find by how many frames a clip is shifted against its reference, from a small signature of each frame.

A signature is the luma averaged over a grid of 16x9 blocks. For every possible offset, the signatures of the reference and of
the distorted clip are subtracted over the same frames of the distorted clip. The variance of the differences over time is
smallest at the offset at which both clips move alike. Constant differences, such as another sample range or a logo, do not
count. An offset must hold in every part of the clips: after a frame that was dropped or doubled, it changes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...utils.interruption import check
from ..open import can_reopen
from ..options import PictureOptions, RawDescription, Selection
from ..source import FrameSource, listed_frames
from .preprocessing import open_pair
from .schedule import ByTime

MAX_SHIFT = 120
"""Largest shift in frames, in both directions. It is smaller for short clips, because enough frames must remain to compare."""

MIN_FRAMES = 8
"""Fewest frames to compare; at least a quarter of the shorter clip as well."""

_GRID = 9, 16
_BLOCK = 8  # largest number of rows and columns of a block that are averaged
_MAX_FRAMES = 4096  # of each clip, which are read if fewer give no certain answer
_FIRST_FRAMES = 4 * MAX_SHIFT
# Another offset counts as equally good if its variance is at most 1.2 times the least variance plus 0.02 of noise.
_AS_GOOD, _NOISE = 1.2, 0.02
_ALIKE = 0.5  # share of the median variance; the right offset must stay below it
# Half of the moving blocks must follow the other clip by a line, up to this variance or this share of their own. Encodes of
# the lowest quality leave 5, another range or gamma 3 %, and flicker that is almost periodic 15 % or more at a wrong offset.
_RESIDUAL, _RESIDUAL_SHARE = 8.0, 0.03
_MAX_PARTS = 4
_NEAR = 3  # offsets that are compared in each part, on both sides of the result

Signatures = npt.NDArray[np.float64]
"""(frames, blocks), in units of 8-bit luma."""


@dataclass(frozen=True)
class Shift:
    """The offset of two clips, and how certain it is."""

    offset: int
    frames: int
    """The number of frames of the distorted clip that support it."""
    holds: bool = True
    """False if another offset matches a part of the clips better, as after a frame that was dropped or doubled."""
    times_match: bool = False
    """True if pairs of the same presentation time match as well as pairs by the offset."""


def find_offset(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
) -> int:
    """Return the offset at which two clips show the same pictures.

    Parameters
    ----------
    reference, distorted : str or path
        Files or URLs that can be read twice.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        The frames to skip, and the offset at which the search begins. Offsets up to 120 frames away from it are tried,
        fewer for short clips.
    pictures : PictureOptions
        Whether pictures are scaled or cropped first.

    Returns
    -------
    int
        Frame i of the reference shows the same picture as frame i+offset of the distorted clip. The result is the offset of
        `selection` if no other offset is better.

    Raises
    ------
    InputError
        The clips move too little for a certain answer, match at none of the offsets, or cannot be read twice.

    """
    paths = os.fspath(reference), os.fspath(distorted)
    for path in paths:
        if not can_reopen(path):
            raise InputError(f"the search for the offset reads {path} a second time, which is not possible; give `offset`")
    return selection.offset + find_shift(paths, raw, selection, pictures).offset


def find_shift(
    paths: tuple[str, str], raw: RawDescription, selection: Selection, pictures: PictureOptions, max_frames: int = _MAX_FRAMES
) -> Shift:
    """Read both clips until the offset is certain, `max_frames` frames at most. Raises InputError if it is not."""
    firsts = selection.first_reference, selection.first_distorted
    sources = open_pair(paths, raw, pictures, streams=selection.streams)
    with sources[0], sources[1]:
        readers = [_SignatureReader(source, first) for source, first in zip(sources, firsts, strict=True)]
        frames = min(_FIRST_FRAMES, max_frames)
        while True:
            first, second = (reader.signatures(frames) for reader in readers)
            at_end = min(len(first), len(second)) < frames or frames == max_frames
            shift, problem = _best(first, second)
            if shift is not None:
                times = [reader.times(len(read)) for reader, read in zip(readers, (first, second), strict=True)]
                return replace(shift, times_match=_match_by_time(first, second, times, shift.offset))
            if at_end:
                raise InputError(f"{paths[0]} and {paths[1]}: {problem}. Give `offset`")
            frames = min(2 * frames, max_frames)


class _SignatureReader:
    """The signatures of a clip, read beginning with one of its frames."""

    def __init__(self, source: FrameSource, first: int) -> None:
        self._source = source
        self._next = first
        self._planes = source.info.new_planes(1)
        self._signatures: list[npt.NDArray[np.float64]] = []
        self._ended = False

    def signatures(self, count: int) -> Signatures:
        while len(self._signatures) < count and not self._ended:
            check()
            if self._source.read([self._next], [self._planes]):
                self._next += 1
                self._signatures.append(signature(self._planes[0], self._source.info.bits))
            else:
                self._ended = True
        return np.array(self._signatures[:count]).reshape(-1, _GRID[0] * _GRID[1])

    def times(self, count: int) -> list[float | None]:
        return self._source.times_of(range(self._next - len(self._signatures), self._next))[:count]


def signature(luma: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], bits: int) -> npt.NDArray[np.float64]:
    """Return the means of a plane's blocks, in units of 8-bit luma. Large planes are sampled in some rows and columns only."""
    step = max(1, min(side // (blocks * _BLOCK) for side, blocks in zip(luma.shape, _GRID, strict=True)))
    thin = luma[::step, ::step].astype(np.float64)
    for axis, blocks in enumerate(_GRID):
        edges = _edges(thin.shape[axis], blocks)
        sums = np.add.reduceat(thin, edges[:-1], axis)
        thin = sums / np.diff(edges).reshape((-1, 1) if axis == 0 else (1, -1))
    means = np.zeros(_GRID)
    means[: thin.shape[0], : thin.shape[1]] = thin / 2.0 ** (bits - 8)
    return means.ravel()


@cache  # all frames of a clip have the same
def _edges(length: int, blocks: int) -> npt.NDArray[np.int_]:
    return np.linspace(0, length, min(blocks, length) + 1).astype(int)


def _best(reference: Signatures, distorted: Signatures) -> tuple[Shift | None, str]:
    """Return the offset if it is certain, else None and the reason."""
    if len(distorted) > len(reference):  # swap the clips: the longer one allows more offsets
        shift, problem = _best(distorted, reference)
        return None if shift is None else replace(shift, offset=-shift.offset), problem
    counts = len(reference), len(distorted)
    min_frames = max(MIN_FRAMES, counts[1] // 4)
    max_shift = min(MAX_SHIFT, counts[1] - min_frames, (counts[0] - min_frames) // 2)
    if max_shift < 1:
        return None, f"clips of {counts[1]} frames are too short to find an offset"
    offsets = np.arange(-max_shift, max_shift + 1)
    end = min(counts[1], counts[0] - max_shift)
    window = distorted[max_shift:end]  # every offset compares the same frames, or still frames would win
    variances = np.array([_variance(window - reference[max_shift - offset : end - offset]) for offset in offsets])
    as_good = variances <= _AS_GOOD * variances.min() + _NOISE
    if as_good.all() and _variance(window) <= _RESIDUAL:
        return None, "the clips stand still or move too little, so that every offset matches equally well"
    best = 0 if as_good[max_shift] else int(offsets[variances.argmin()])
    same = variances.min() <= max(_NOISE, _ALIKE * np.median(variances))
    if abs(best) == max_shift or not (same and _move_alike(reference[max_shift - best : end - best], window)):
        return None, f"at no offset of less than {max_shift} frames do the clips show the same pictures"
    if best == 0:
        return Shift(0, len(window), _better_in_part(reference, distorted, 0) is None), ""
    in_part = _better_in_part(reference, distorted, best)
    if in_part is not None:
        return None, f"the offset is {best} in one part of the clips and {in_part} in another: frames were dropped or doubled"
    if as_good.sum() > 1:
        possible = listed_frames(offsets[as_good].tolist())
        return None, f"the clips move too little to find the offset; it may be one of {possible}"
    return Shift(best, len(window)), ""


def _move_alike(reference: Signatures, distorted: Signatures) -> bool:
    """Return whether half of the blocks that move in one of the clips move alike in both, whatever their contrast is."""
    first, second = reference - reference.mean(axis=0), distorted - distorted.mean(axis=0)
    moved, followed = (first**2).mean(axis=0), (second**2).mean(axis=0)
    explained = (first * second).mean(axis=0) ** 2 / np.maximum(moved, _NOISE)
    moving = np.maximum(moved, followed) > _RESIDUAL
    alike = followed - explained <= np.maximum(_RESIDUAL, _RESIDUAL_SHARE * followed)
    return not moving.any() or bool(alike[moving].mean() >= 0.5)


def _better_in_part(reference: Signatures, distorted: Signatures, offset: int) -> int | None:
    """Return an offset that matches some part of the clips far better than `offset` does; None if there is none."""
    near = np.arange(offset - _NEAR, offset + _NEAR + 1)
    frames = np.arange(max(0, near[-1]), min(len(distorted), len(reference) + near[0]))  # of the distorted clip
    parts = max(1, min(_MAX_PARTS, len(frames) // MIN_FRAMES))
    for part in np.array_split(frames, parts) if len(frames) else []:
        variances = np.array([_variance(distorted[part] - reference[part - candidate]) for candidate in near])
        if variances.min() + _NOISE < _ALIKE * variances[_NEAR]:
            return int(near[variances.argmin()])
    return None


def _match_by_time(reference: Signatures, distorted: Signatures, times: Sequence[Sequence[float | None]], offset: int) -> bool:
    """Return whether frames of the same time match as well as frames that an offset pairs."""
    if None in chain(*times):
        return False
    first, second = (np.array(of_clip, np.float64) for of_clip in times)
    pairing = ByTime(first, second, 0, 0)
    frames, by_time = (np.array(numbers(range(len(pairing))), int) for numbers in (pairing.reference, pairing.distorted))
    both = (frames + offset >= 0) & (frames + offset < len(distorted))
    if both.sum() < MIN_FRAMES:
        return False
    variances = [_variance(distorted[of] - reference[frames[both]]) for of in (by_time[both], frames[both] + offset)]
    return variances[0] <= _AS_GOOD * variances[1] + _NOISE


def _variance(differences: Signatures) -> float:
    """Return the variance over time, averaged over the blocks, of an array of shape (frames, blocks)."""
    return float(differences.var(axis=0).mean())
