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
from itertools import chain

import numpy as np
import numpy.typing as npt

from ..errors import InputError, OptionError, VkssimError
from ..frames.open import can_reopen
from ..frames.options import PictureOptions, RawDescription, Selection
from ..frames.pairing.preprocessing import open_pair
from ..frames.pairing.schedule import ByTime
from ..frames.source import FrameSource
from ..report.results import ScoreReport
from ..storage.location import redact_url
from ..utils.interruption import check
from ..utils.wording import counted
from .options import Clips, ScoreOptions
from .verdict import PTS_ADVICE

MOST = 120
"""Largest shift in frames, in both directions. It is smaller for short clips, because enough frames must remain to compare."""

_GRID = 9, 16
_BLOCK = 8  # at most so many rows and columns of a block are averaged
_LONGEST = 4096  # most frames of each clip that are read if fewer give no certain answer
_FIRST = 4 * MOST
_HINT_FRAMES = 96  # frames of each clip that are decoded for a hint; they show shifts of up to 35 frames
_LEAST = 8  # fewest frames to compare; at least a quarter of the shorter clip as well
# Another offset counts as equally good if its variance is at most 1.2 times the least variance plus 0.02 of noise.
_AS_GOOD, _NOISE = 1.2, 0.02
_MAX_NAMED = 8
_LOW = 0.9  # mean similarity below which clips are suspected to be shifted
_ALIKE = 0.5  # share of the median variance; the right offset must stay below it
# Half of the moving blocks must follow the other clip by a line, up to this variance or this share of their own. Encodes of
# the lowest quality leave 5, another range or gamma 3 %, and flicker that is almost periodic 15 % or more at a wrong offset.
_RESIDUAL, _RESIDUAL_SHARE = 8.0, 0.03
_MAX_PARTS = 4
_NEAR = 3  # offsets that are compared in each part, on both sides of the one that was found

Signatures = npt.NDArray[np.float64]
"""(frames, blocks), in units of 8-bit luma."""


@dataclass(frozen=True)
class Shift:
    """An offset that was found, and the number of frames of the distorted clip that support it.

    It `holds` if no other offset matches a part of the clips better, as after a frame that was dropped or doubled. The
    `times_match` if pairs of the same presentation time match as well as pairs by the offset.
    """

    offset: int
    frames: int
    holds: bool = True
    times_match: bool = False


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
    return selection.offset + _found(paths, raw, selection, pictures, _LONGEST).offset


def offset_of(clips: Clips, options: ScoreOptions) -> int:
    """Return the offset of a pair as `find_offset` does. Raises OptionError too, for pairs that are made by time."""
    if options.sync != "index":
        raise OptionError("`find_offset` counts frames, and `sync=pts` pairs them by time; give one of the two")
    return find_offset(*clips.paths, raw=clips.raw, selection=options.selection, pictures=options.pictures)


def add_hint(report: ScoreReport, clips: Clips, options: ScoreOptions) -> None:
    """Give the report of a pair at most one piece of advice on how to pair the frames.

    If the clips scored low or their times differ, the first `_HINT_FRAMES` frames of both are read once more. If one offset
    matches all their parts, and their times do not, a warning names it unless they were scored with it, and the warnings about
    times lose their advice, which would pair other pictures.
    """
    selection = options.selection
    if options.sync != "index" or (selection.takes_all and len(report.frames) <= _LEAST):
        return  # the frames are paired by time already, or one of the clips is too short to tell
    if not (_is_low(report) or any(warning.endswith(PTS_ADVICE) for warning in report.warnings)):
        return
    # Frames that are skipped have to be decoded as well.
    frames = _HINT_FRAMES - max(selection.first_reference, selection.first_distorted)
    if frames <= _LEAST or not all(map(can_reopen, clips.paths)):
        return
    try:
        shift = _found(clips.paths, clips.raw, selection, options.pictures, frames)
    except (VkssimError, MemoryError):  # the search failed or gave no certain offset; the scores are valid all the same
        return
    if shift.holds and not shift.times_match:
        report.warnings[:] = [warning.removesuffix(PTS_ADVICE) for warning in report.warnings]
        if shift.offset:
            offset = selection.offset + shift.offset
            report.warnings.append(
                f"the clips seem to be shifted: frame i of {redact_url(clips.reference)} looks like frame i{offset:+d} of"
                f" {redact_url(clips.distorted)}, in the {counted(shift.frames, 'frame')} that were compared. --offset"
                f" {offset} or --find-offset would match them"
            )


def _is_low(report: ScoreReport) -> bool:
    """Return whether the clips scored low. Frames without a score do not count."""
    name = next(iter(report.similarities), None)  # None if all scores are in dB: a dB value alone says little
    if name is None or not report.frames:
        return False
    column = report.column(name)
    scores = column[~np.isnan(column)]
    return bool(scores.size and scores.mean() < _LOW)


def _found(paths: tuple[str, str], raw: RawDescription, selection: Selection, pictures: PictureOptions, longest: int) -> Shift:
    """Read both clips until the offset is certain, `longest` frames at most. Raises InputError if it is not."""
    firsts = selection.first_reference, selection.first_distorted
    sources = open_pair(paths, raw, pictures, streams=selection.streams)
    with sources[0], sources[1]:
        readers = [_SignatureReader(source, first) for source, first in zip(sources, firsts, strict=True)]
        frames = min(_FIRST, longest)
        while True:
            first, second = (reader.signatures(frames) for reader in readers)
            at_end = min(len(first), len(second)) < frames or frames == longest
            shift, problem = _best(first, second)
            if shift is not None:
                times = [reader.times(len(found)) for reader, found in zip(readers, (first, second), strict=True)]
                return replace(shift, times_match=_match_by_time(first, second, times, shift.offset))
            if at_end:
                raise InputError(f"{paths[0]} and {paths[1]}: {problem}. Give `offset`")
            frames = min(2 * frames, longest)


class _SignatureReader:
    """The signatures of a clip, read beginning with one of its frames."""

    def __init__(self, source: FrameSource, first: int) -> None:
        self._source = source
        self._next = first
        self._planes = source.info.new_planes(1)
        self._found: list[npt.NDArray[np.float64]] = []
        self._ended = False

    def signatures(self, count: int) -> Signatures:
        """Return the signatures of the first `count` frames; fewer if the clip ends before."""
        while len(self._found) < count and not self._ended:
            check()
            if self._source.read([self._next], [self._planes]):
                self._next += 1
                self._found.append(signature(self._planes[0], self._source.info.bits))
            else:
                self._ended = True
        return np.array(self._found[:count]).reshape(-1, _GRID[0] * _GRID[1])

    def times(self, count: int) -> list[float | None]:
        """Return the presentation times of the first `count` frames in seconds, None if unknown."""
        return self._source.times_of(range(self._next - len(self._found), self._next))[:count]


def signature(luma: npt.NDArray[np.uint8] | npt.NDArray[np.uint16], bits: int) -> npt.NDArray[np.float64]:
    """Return the means of a plane's blocks, in units of 8-bit luma. Large planes are sampled in some rows and columns only."""
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
    """Return the offset if it is certain, else None and the reason."""
    if len(distorted) > len(reference):  # swap the clips: the longer one allows more offsets
        shift, problem = _best(distorted, reference)
        return None if shift is None else replace(shift, offset=-shift.offset), problem
    counts = len(reference), len(distorted)
    least = max(_LEAST, counts[1] // 4)
    most = min(MOST, counts[1] - least, (counts[0] - least) // 2)
    if most < 1:
        return None, f"clips of {counts[1]} frames are too short to find an offset"
    offsets = np.arange(-most, most + 1)
    end = min(counts[1], counts[0] - most)
    window = distorted[most:end]  # every offset compares the same frames, or still frames would win
    variances = np.array([_variance(window - reference[most - offset : end - offset]) for offset in offsets])
    as_good = variances <= _AS_GOOD * variances.min() + _NOISE
    if as_good.all() and _variance(window) <= _RESIDUAL:
        return None, "the clips stand still or move too little, so that every offset matches equally well"
    best = 0 if as_good[most] else int(offsets[variances.argmin()])
    same = variances.min() <= max(_NOISE, _ALIKE * np.median(variances))
    if abs(best) == most or not (same and _move_alike(reference[most - best : end - best], window)):
        return None, f"at no offset of less than {most} frames do the clips show the same pictures"
    if best == 0:
        return Shift(0, len(window), _better_in_part(reference, distorted, 0) is None), ""
    other = _better_in_part(reference, distorted, best)
    if other is not None:
        return None, f"the offset is {best} in one part of the clips and {other} in another: frames were dropped or doubled"
    if as_good.sum() > 1:
        return None, f"the clips move too little to find the offset; it may be one of {_listed(offsets[as_good])}"
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
    parts = max(1, min(_MAX_PARTS, len(frames) // _LEAST))
    for part in np.array_split(frames, parts) if len(frames) else []:
        variances = np.array([_variance(distorted[part] - reference[part - other]) for other in near])
        if variances.min() + _NOISE < _ALIKE * variances[_NEAR]:
            return int(near[variances.argmin()])
    return None


def _match_by_time(reference: Signatures, distorted: Signatures, times: Sequence[Sequence[float | None]], offset: int) -> bool:
    """Return whether frames of the same time match as well as frames that an offset pairs."""
    if None in chain(*times):
        return False
    first, second = (np.array(found, np.float64) for found in times)
    pairing = ByTime(first, second, 0, 0)
    frames, by_time = (np.array(numbers(range(len(pairing))), int) for numbers in (pairing.reference, pairing.distorted))
    both = (frames + offset >= 0) & (frames + offset < len(distorted))
    if both.sum() < _LEAST:
        return False
    variances = [_variance(distorted[of] - reference[frames[both]]) for of in (by_time[both], frames[both] + offset)]
    return variances[0] <= _AS_GOOD * variances[1] + _NOISE


def _variance(differences: Signatures) -> float:
    """Return the variance over time, averaged over the blocks, of an array of shape (frames, blocks)."""
    return float(differences.var(axis=0).mean())


def _listed(offsets: npt.NDArray[np.intp]) -> str:
    texts = [str(offset) for offset in offsets]
    return ", ".join(texts if len(texts) <= _MAX_NAMED else [*texts[: _MAX_NAMED - 1], "…", texts[-1]])
