"""Finds by how many frames a clip is shifted against its reference, from a small signature of each frame.

A signature is the luma averaged over a grid of 16x9 blocks. For every offset that can be, the differences of the signatures of
the same frames of the distorted clip are looked at: their variance over time is smallest at the offset at which both clips move
alike. What is constant, as another range of the samples or a logo, does not count.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import DemandError, InputError, VkssimError
from ..frames.open import readable_twice
from ..frames.options import PictureOptions, RawDescription, Selection
from ..frames.preprocessing import open_pair
from ..frames.source import FrameSource
from ..report.results import ScoreReport
from ..storage.remote import is_url, named
from ..utils.interruption import check
from ..utils.wording import counted
from .options import Clips, ScoreOptions

MOST = 120
"""Frames that a clip may be shifted by, either way; fewer for short clips, of which enough frames have to be left."""

_GRID = 9, 16
_BLOCK = 8  # samples of a block's side that are averaged
_LONGEST = 4096  # frames of each clip that are looked at where fewer do not tell
_FIRST = 4 * MOST
_LEAST = 8  # frames that are looked at, and at least a quarter of the shorter clip
_AS_GOOD, _NOISE = 1.2, 0.02  # an offset whose variance is not beyond as many times the least, and that of noise, is as good
_MOST_NAMED = 8
_LOW = 0.9  # the mean of a similarity below which the clips are looked at, for they may be shifted
_ALIKE = 0.5  # of the variance at most offsets; at the right one it is less

Signatures = npt.NDArray[np.float64]
"""(frames, blocks), in units of 8-bit luma."""


@dataclass(frozen=True)
class Shift:
    """An offset that was found, and how many frames of the distorted clip it was found in."""

    offset: int
    frames: int


def find_offset(
    reference: str | os.PathLike[str],
    distorted: str | os.PathLike[str],
    *,
    raw: RawDescription = RawDescription(),  # noqa: B008 - frozen
    selection: Selection = Selection(),  # noqa: B008 - frozen
    pictures: PictureOptions = PictureOptions(),  # noqa: B008 - frozen
) -> int:
    """Return the offset at which two clips show the same.

    Parameters
    ----------
    reference, distorted : str or path
        Files or URLs that can be read twice.
    raw : RawDescription
        Size, pixel format and depth of raw files.
    selection : Selection
        The frames to skip, and the offset to begin with: offsets of up to 120 frames beside it are tried, fewer for short
        clips.
    pictures : PictureOptions
        Whether pictures are scaled or cropped first.

    Returns
    -------
    int
        Frame i of the reference shows the same as frame i+offset of the distorted clip. It is the offset of `selection` where
        no other is better.

    Raises
    ------
    InputError
        The clips move too little to tell, show nothing alike at any of the offsets, or cannot be read twice.

    """
    paths = os.fspath(reference), os.fspath(distorted)
    for path in paths:
        if not readable_twice(path):
            raise InputError(f"finding the offset reads {path} once more, which it does not allow; give `offset`")
    return selection.offset + _found(paths, raw, selection, pictures, _LONGEST).offset


def add_hint(
    outcome: ScoreReport | Exception,
    clips: Clips,
    options: ScoreOptions,
    *,
    of_many: bool = False,
) -> None:
    """Add a warning to the report of two clips, or to that of a DemandError, where they scored low and seem to be shifted.

    The first frames of both clips are read once more for that. `of_many` says that the pair is one of many: the options hold
    for the others too, and clips by URL are not read again, for other machines may have scored them.
    """
    report = outcome.report if isinstance(outcome, DemandError) else outcome  # then too all frames were scored
    if not isinstance(report, ScoreReport) or options.sync != "index" or (of_many and any(map(is_url, clips.paths))):
        return
    if options.selection.takes_all and len(report.frames) <= _LEAST:
        return  # one of the clips is too short to tell
    name = next(iter(report.similarities), None)  # none where all scores are in dB, which say little by themselves
    if name is not None and report.frames and np.nanmean(report.column(name)) < _LOW:
        warning = _hint(clips, options, of_many)
        report.warnings += [] if warning is None else [warning]


def _hint(clips: Clips, options: ScoreOptions, of_many: bool) -> str | None:
    """Return the sentence on two clips that seem to be shifted; None where they do not."""
    if not all(map(readable_twice, clips.paths)):
        return None
    try:
        shift = _found(clips.paths, clips.raw, options.selection, options.pictures, _FIRST)
    except (VkssimError, MemoryError):  # the offset is not certain, or cannot be looked for; the scores are there all the same
        return None
    if not shift.offset:
        return None
    offset = options.selection.offset + shift.offset
    cure = "compares these, and shifts every other pair as well" if of_many else "compares these, or --find-offset"
    return (
        f"the clips seem to be shifted: frame i of {named(clips.reference)} looks like frame i{offset:+d} of"
        f" {named(clips.distorted)}, in the {counted(shift.frames, 'frame')} that were looked at. --offset {offset} {cure}"
    )


def _found(paths: tuple[str, str], raw: RawDescription, selection: Selection, pictures: PictureOptions, longest: int) -> Shift:
    """Read both clips until the offset is certain, `longest` frames at most. Raises InputError where it is not."""
    firsts = selection.first_reference, selection.first_distorted
    sources = open_pair(*paths, raw, pictures, streams=selection.streams)
    with sources[0], sources[1]:
        readers = [_Reader(source, first) for source, first in zip(sources, firsts, strict=True)]
        frames = min(_FIRST, longest)
        while True:
            first, second = (reader.signatures(frames) for reader in readers)
            at_end = min(len(first), len(second)) < frames or frames == longest
            shift, problem = _best(first, second)
            if shift is not None:
                return shift
            if at_end:
                raise InputError(f"{paths[0]} and {paths[1]}: {problem}. Give `offset`")
            frames = min(2 * frames, longest)


class _Reader:
    """Reads the signatures of a clip, from one of its frames on."""

    def __init__(self, source: FrameSource, first: int) -> None:
        self._source = source
        self._next = first
        self._planes = source.info.new_planes(1)
        self._found: list[npt.NDArray[np.float64]] = []
        self._ended = False

    def signatures(self, count: int) -> Signatures:
        """Return those of the first `count` frames; fewer where the clip ends before."""
        while len(self._found) < count and not self._ended:
            check()
            if self._source.read([self._next], [self._planes]):
                self._next += 1
                self._found.append(signature(self._planes[0], self._source.info.bits))
            else:
                self._ended = True
        return np.array(self._found[:count]).reshape(-1, _GRID[0] * _GRID[1])


def signature(luma: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], bits: int) -> npt.NDArray[np.float64]:
    """Return the means of a plane's blocks, in units of 8-bit luma; of large planes only some rows and columns are read."""
    step = max(1, min(side // (blocks * _BLOCK) for side, blocks in zip(luma.shape, _GRID, strict=True)))
    thin = luma[::step, ::step].astype(np.float64)
    for axis, blocks in enumerate(_GRID):
        edges = np.linspace(0, thin.shape[axis], min(blocks, thin.shape[axis]) + 1).astype(int)
        sums = np.add.reduceat(thin, edges[:-1], axis)
        thin = sums / np.diff(edges).reshape((-1, 1) if axis == 0 else (1, -1))
    found = np.zeros(_GRID)
    found[: thin.shape[0], : thin.shape[1]] = thin / 2.0 ** (bits - 8)
    return found.ravel()


def _best(reference: Signatures, distorted: Signatures) -> tuple[Shift | None, str]:
    """Return the offset that is certain; None, and why, where none is."""
    if len(distorted) > len(reference):  # the same the other way round: the longer clip leaves more offsets to look at
        shift, problem = _best(distorted, reference)
        return None if shift is None else Shift(-shift.offset, shift.frames), problem
    counts = len(reference), len(distorted)
    least = max(_LEAST, counts[1] // 4)
    most = min(MOST, counts[1] - least, (counts[0] - least) // 2)
    if most < 1:
        return None, f"clips of {counts[1]} frames are too short to find an offset"
    offsets = np.arange(-most, most + 1)
    end = min(counts[1], counts[0] - most)
    window = distorted[most:end]  # the same frames at each offset, or still ones would win
    variances = np.array([_variance(window - reference[most - offset : end - offset]) for offset in offsets])
    as_good = variances <= _AS_GOOD * variances.min() + _NOISE
    best = 0 if as_good[most] else int(offsets[variances.argmin()])
    if abs(best) == most or variances.min() > max(_NOISE, _ALIKE * np.median(variances)):
        return None, f"at no offset of less than {most} frames do they show the same"
    if best == 0:
        return Shift(0, len(window)), ""
    if as_good.sum() > 1:
        return None, f"they move too little to find the offset; it may be one of {_listed(offsets[as_good])}"
    return Shift(best, len(window)), ""


def _variance(differences: Signatures) -> float:
    """Return the variance over time, averaged over the blocks."""
    return float(differences.var(axis=0).mean())


def _listed(offsets: npt.NDArray[np.intp]) -> str:
    texts = [str(offset) for offset in offsets]
    return ", ".join(texts if len(texts) <= _MOST_NAMED else [*texts[: _MOST_NAMED - 1], "…", texts[-1]])
