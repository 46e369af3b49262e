"""The outcome of reading a clip: its warnings, and the error that ended it early."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..errors import InputError
from ..utils.wording import counted
from .source import FrameSource, check_unchanged

_MOST_NAMED_FRAMES = 8
_MOST_REMARKS = 8

Remarks = tuple[tuple[int, str], ...]
"""Messages about frames, each with the number of its frame."""


@dataclass(frozen=True)
class ReadOutcome:
    """The outcome of reading a clip.

    `damage` lists the frames in which the decoder had to conceal missing data, with the decoder's message. `remarks` lists
    other warnings about frames. Both stop at the last frame that was scored, because a decoder reads ahead. `problem` is the
    error that ended the clip early or makes its scores doubtful. `claimed` is the number of frames that the file states,
    `found` the number that could be read, and `hidden` the number that its edit list hides, counted only if fewer were found.
    `expected` is the expected number, which may come from the duration. `version` identifies the content of the file.
    """

    path: str
    damage: Remarks = ()
    remarks: Remarks = ()
    problem: InputError | None = None
    claimed: int | None = None
    found: int | None = None
    version: str | None = None
    hidden: int = 0
    expected: int | None = None

    @classmethod
    def of(cls, source: FrameSource, last: int | None) -> ReadOutcome:
        """Return the outcome of a source after it was read up to frame `last`, the last scored one; None if none was scored."""

        def scored(messages: Iterable[tuple[int, str]]) -> Remarks:
            return tuple(sorted((number, text) for number, text in messages if last is not None and number <= last))

        damage, remarks = scored(source.damage.items()), scored(source.remarks)
        problem = source.problem
        try:
            check_unchanged(source)
        except InputError as error:  # the change may be the reason for the early end
            problem = error
        version = None if source.opened is None else source.opened.version
        claimed, found = source.info.frames, source.length
        hidden = source.hidden_frames() if claimed is not None and found is not None and found < claimed else 0
        return cls(source.info.path, damage, remarks, problem, claimed, found, version, hidden, source.expected)

    def warnings(self) -> list[str]:
        """Return the warnings on the frames that were read: damage that was concealed, and other remarks of the decoder.

        A text is given once, with the numbers of its frames. Texts beyond a limit are only counted.
        """
        warnings = []
        if self.damage:
            frames = [number for number, _ in self.damage]
            message = next((f". FFmpeg says: {text}" for _, text in self.damage if text), "")
            warnings.append(
                f"{self.path} is damaged in {len(frames)} of its frames ({listed_frames(frames)}); the decoder concealed the"
                f" missing data, which changes the scores of these frames and of frames that refer to them{message}"
            )
        by_text = sorted(self.remarks, key=lambda remark: remark[1])
        texts = [(text, [number for number, _ in remarks]) for text, remarks in groupby(by_text, lambda remark: remark[1])]
        texts.sort(key=lambda entry: entry[1][0])
        warnings += [f"{self.path}, frame {listed_frames(frames)}: {text}" for text, frames in texts[:_MOST_REMARKS]]
        left = len(texts) - _MOST_REMARKS
        return warnings + ([f"{self.path}: {left} more messages about its frames are left out"] if left > 0 else [])

    def missing_frames(self) -> str | None:
        """Return the warning on a clip that has fewer frames than its file states; None if it has them all."""
        if self.claimed is None or self.found is None or self.found >= self.claimed:
            return None
        hidden = f"{self.path}: its edit list hides {counted(self.hidden, 'frame')} of {self.claimed}" if self.hidden else ""
        if hidden and self.claimed - self.hidden <= self.found:
            return f"{hidden}; the {self.found} that a player shows were scored"
        more = f"; {hidden}" if hidden else ""
        return f"{self.path} says that it has {counted(self.claimed, 'frame')}; only {self.found} could be decoded{more}"


def listed_frames(frames: Sequence[int]) -> str:
    """Return the numbers of frames for a message; only the first ones if there are many."""
    return ", ".join(map(str, frames[:_MOST_NAMED_FRAMES])) + (", …" if len(frames) > _MOST_NAMED_FRAMES else "")
