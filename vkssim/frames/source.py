"""The interface of sources of frames, the outcome of reading a source, and sources that wrap a source, some with a step."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import InputError, RangeError
from ..storage.inputs import Opened
from ..types import ExternalFrame, Planes, largest_out_of_range
from ..utils.interruption import check
from ..utils.thread_pool import Closable
from ..utils.wording import counted, listed
from .info import ClipFacts, VideoInfo, VideoPackets
from .pixels import Colour, DecodedFrame
from .transforms import Crop, Orientation

Frame = TypeVar("Frame")

_UNKNOWN_LENGTH_STEP = 24  # frames between two samples of a stream of unknown length


def sample_problem(info: VideoInfo, frame: int, plane: str, value: int) -> InputError:
    """Return the error for a frame that has a sample larger than its depth allows, in the plane of that name."""
    return InputError(
        f"{info.path}: frame {frame} has a sample of {value} in its plane {plane}, and {2**info.bits - 1} is the largest of"
        f" {info.bits} bits; the depth or the size is wrong, or the samples do not lie in the low bits of their two bytes"
    )


class SeekIndex(Protocol):
    """The positions from which a stream can be read: the first byte of a frame, or its presentation time in ticks."""

    frames: int

    def before(self, number: int) -> int:
        """Return the last frame up to and including `number` that can be decoded without the frames before it."""

    def position(self, number: int) -> int:
        """Return the position of a frame, for `FrameSource.seek`."""


class KeyframeIndex:
    """The positions of all frames, rising. `keys` are the numbers of those that can be decoded by themselves, rising."""

    def __init__(self, positions: Sequence[int], keys: Sequence[int]) -> None:
        self.frames = len(positions)
        self._positions = positions
        self._keys = keys

    def before(self, number: int) -> int:
        """Return the last frame up to `number` that can be decoded without the frames before it."""
        index = bisect_right(self._keys, number) - 1
        return self._keys[index] if index >= 0 else 0

    def position(self, number: int) -> int:
        """Return the position of a frame."""
        return self._positions[number]


class FrameSource(Closable, ABC):
    """A stream of frames; use it with `with`.

    A source that is `concurrent` may be read from several threads at once and in any order. All other sources are read in
    order, by one thread.
    """

    info: VideoInfo
    concurrent = False
    problem: InputError | None = None
    """The reason why the stream ended early, once it is known; the frames before are good."""
    length: int | None = None
    """The number of frames, once it is known: at the start, or when the end has been read."""
    expected: int | None = None
    """The number of frames by the stream's own statement, its size or its duration; None if it is unknown."""
    damage: Mapping[int, str] = MappingProxyType({})
    """FFmpeg's first report on each damaged frame, by the number of the frame. With threads, it may be some frames too low."""
    remarks: Sequence[tuple[int, str]] = ()
    """Other warnings on the frames read so far, each with the number of its first frame."""
    fallback: tuple[int, str] | None = None
    """The frame from which on the CPU decodes in place of hardware, and a sentence on why; None if nothing has changed."""
    stream: int | None = None
    """The index of the stream of a container that the caller named; None if the stream was chosen automatically."""
    opened: Opened | None = None
    """The state of the file when it was opened; None if the source is not a file."""
    bytes_read = 0
    """The number of bytes of the file that were read for its frames so far."""
    file_bytes: int | None = None
    """The size in bytes of the file, or of all files of a sequence; None for a pipe."""
    aperture: Crop | None = None
    """The visible rectangle of the frames; None if all of the frame is visible."""
    orientation: Orientation | None = None
    """The rotation and mirroring that players apply to the frames; None for neither."""
    at_start = False
    """True if the source is open and none of its frames was read; False if that is not known."""
    external = False
    """True if `read_external` can write frames to memory of the GPU."""
    is_rgb = False
    """True if pictures are R'G'B'; `convert_to` then chooses the Y'CbCr that they become."""
    any_size = False
    """True if `read_any_size` may return frames of another size than that of `info`."""

    def allow_any_size(self) -> None:
        """Let the size of frames change if a step scales each of them. Call it before the first frame is read."""

    def convert_to(self, colour: Colour) -> None:
        """Choose the Y'CbCr that R'G'B' becomes. Call it before the first frame is read."""

    @abstractmethod
    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read the frames with these rising numbers, counted from 0, into (y,) or (y, cb, cr), each an (H, W) array.

        Return the number of frames that were read, which is less than requested at the end of the stream.
        """

    def read_any_size(self, number: int, memory: Planes) -> Planes | None:
        """Read a frame into memory for frames of the usual size, and return it; in new memory if it has another size.

        Return None at the end of the stream.
        """
        return memory if self.read([number], [memory]) else None

    def read_external(self, numbers: Sequence[int], targets: Sequence[ExternalFrame]) -> int:
        """Read frames as `read` does, into memory of the GPU that decodes."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            frame = self.decoded_frame(number)
            if frame is None:
                return count
            frame.write(target)
        return len(numbers)

    def decoded_frame(self, number: int) -> DecodedFrame | None:
        """Return a frame of an `external` source before it is copied; None if the stream ends before it.

        Frames are requested in rising order. A decoder has few surfaces, so release the frame soon.
        """
        raise NotImplementedError(f"the frames of {self.info.path} are not on a GPU")

    def times_of(self, numbers: Sequence[int]) -> list[float | None]:
        """Return the presentation times of frames that were read, in seconds from the first frame; None if it is unknown."""
        fps = self.info.fps
        return [None if fps is None else number * fps.denominator / fps.numerator for number in numbers]

    def times(self) -> npt.NDArray[np.float64] | None:
        """Return the presentation times of all frames, (frames,) float64; None if they cannot be known in advance."""
        if self.info.fps is None or self.expected is None:
            return None
        return np.arange(self.expected) / float(self.info.fps)

    def seek_index(self) -> SeekIndex | None:
        """Return the positions to read from, found without decoding; None if only reading from the start is surely right."""
        return None

    def seek(self, number: int, position: int) -> int | None:
        """Continue with the frame `number`, which begins at that position of `seek_index`.

        Return the fingerprint of the frame, see `verify_boundary`. Raises RangeError if the frame is not there.
        """
        raise RangeError(f"{self.info.path} can only be read from its start")

    def verify_boundary(self, number: int, last: int) -> int | None:
        """Check that the last frame that was read was at the position `last` of `seek_index`. Raises RangeError.

        Return the fingerprint of the frame `number`. If another source's `seek` returned the same fingerprint, it has found the
        same frame. Return None if frames do not depend on each other.
        """
        return None

    def clip_facts(self) -> ClipFacts:
        """Return the facts about the clip that are known without reading it, before any preprocessing."""
        info = self.info
        same = ("width", "height", "bits", "chroma", "matrix", "range", "transfer", "field_order", "frames")
        return ClipFacts(
            container=info.kind,
            codec="rawvideo",
            decoder=info.kind,
            fps=None if info.fps is None else round(float(info.fps), 6),
            file_bytes=self.file_bytes,
            **{name: getattr(info, name) for name in same},
        )

    def packets(self) -> VideoPackets | None:
        """Return the totals of all packets of the video stream, read again if need be; None if it is not compressed."""
        return None

    def hidden_frames(self) -> int:
        """Return the number of frames that an edit list hides; found as `packets`."""
        return 0

    def sample(self, count: int) -> Iterator[Planes]:
        """Yield the luma of at most `count` frames from all over the stream. Afterwards the source cannot be read otherwise."""
        step = _UNKNOWN_LENGTH_STEP if self.expected is None else max(1, self.expected // count)
        target = self.info.new_planes(1)
        for number in range(0, count * step, step):
            if not self.read([number], [target]):
                return
            yield target

    def give_up(self) -> None:
        """End a `read` that waits for data which may never come. Call it from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; a second call does nothing."""


class SequentialSource(FrameSource):
    """A stream that can only be read in order: frames that were not requested are skipped."""

    def __init__(self) -> None:
        self._position = 0

    @abstractmethod
    def _next(self, target: Planes | None) -> bool:
        """Read the next frame, or skip it if there is no target; return False at the end. May set `problem`."""

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read frames, as `FrameSource.read` says."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self._read_to(number, target):
                return count
        return len(numbers)

    def _read_to(self, number: int, target: Planes | None) -> bool:
        """Skip the frames before `number`, and read that frame; return False if the stream ends before."""
        while self._position <= number:
            if not self._advance(partial(self._next, target if self._position == number else None)):
                return False
        return True

    def _advance(self, read: Callable[[], Frame]) -> Frame:
        """Call `read` for the next frame, and return its result, which is not true at the end of the stream."""
        check()
        result = read()
        if result:
            self._position += 1
        else:
            self.length = self._position
        return result

    def verify_boundary(self, number: int, last: int) -> int | None:
        """Check the last frame, and return the fingerprint of the next one, as `FrameSource.verify_boundary` says."""
        if not (self._read_to(number - 1, None) and self._was_last(last)):
            raise RangeError(f"{self.info.path}: its frames are not at the expected positions before frame {number}")
        return self._following()

    def _was_last(self, _position: int) -> bool:
        return False

    def _following(self) -> int | None:
        """Return the fingerprint of the next frame; None if frames do not depend on each other."""
        return None


# -- the outcome of reading -------------------------------------------------------------------------------------------


def check_unchanged(source: FrameSource) -> None:
    """Raise InputError if the file of a source has changed since it was opened."""
    if source.opened is not None and source.opened.changed:
        raise changed_error(source.info.path, source.problem)


def changed_error(path: str, problem: InputError | None = None) -> InputError:
    """Return the error for a file that was changed while it was read, with the problem of reading it, if any."""
    seen = "" if problem is None else f" ({problem})"
    return InputError(
        f"{path} was changed while it was read{seen}: it was written to, replaced or removed, and its scores may be of two"
        " files. Score it again when it is no longer being written"
    )


_MAX_NAMED_FRAMES = 8


@dataclass(frozen=True)
class ReadOutcome:
    """The outcome of reading a clip. Frames count up to the last one that was scored, because a decoder reads ahead."""

    path: str
    damage: tuple[int, ...] = ()
    """The damaged frames."""
    damage_message: str = ""
    """FFmpeg's first report on one of them."""
    remarks: tuple[tuple[int, str], ...] = ()
    """Other warnings, each with the number of its frame."""
    problem: InputError | None = None
    """The error that ended the clip early, or makes its scores doubtful."""
    claimed: int | None = None
    """The number of frames that the file states."""
    length: int | None = None
    """The number of frames that could be read."""
    version: str | None = None
    """The content of the file, as far as samples show it."""
    hidden: int = 0
    """The number of frames that the edit list hides, counted only if fewer could be read than the file states."""
    expected: int | None = None
    """The expected number of frames, which may come from the duration."""
    status: str | None = None
    """The last change of the file, as in `Opened`."""
    touched: bool = False
    """True if the file was perhaps written to."""

    @classmethod
    def of(cls, source: FrameSource, last: int | None) -> ReadOutcome:
        """Return the outcome of a source after it was read up to frame `last`, the last scored one; None if none was scored."""
        scored = -1 if last is None else last
        damage = {number: text for number, text in source.damage.items() if number <= scored}
        remarks = [*source.remarks, *([] if source.fallback is None else [source.fallback])]
        problem, claimed, length, opened = source.problem, source.info.frames, source.length, source.opened
        if opened is not None and opened.changed:  # the change may be the reason for the early end
            problem = changed_error(source.info.path, problem)

        return cls(
            source.info.path,
            tuple(sorted(damage)),
            damage[min(damage)] if damage else "",
            tuple(sorted(remark for remark in remarks if remark[0] <= scored)),
            problem,
            claimed,
            length,
            version=None if opened is None else opened.version,
            hidden=source.hidden_frames() if claimed is not None and length is not None and length < claimed else 0,
            expected=source.expected,
            status=None if opened is None else opened.status,
            touched=opened is not None and opened.touched,
        )

    def warnings(self) -> list[str]:
        """Return the warnings on the frames that were read. A text is given once, with its frames."""
        warnings = [self.damaged()] if self.damage else []
        if self.touched and self.problem is None:
            warnings.append(
                f"the status of {self.path} changed while it was read: new permissions or names do that, and so does a rewrite"
                " that restores the modification time. Score it again if it may have been written to"
            )
        by_text: dict[str, list[int]] = {}
        for number, text in self.remarks:
            by_text.setdefault(text, []).append(number)
        return warnings + [f"{self.path}, frame {listed_frames(frames)}: {text}" for text, frames in by_text.items()]

    def damaged(self) -> str:
        """Return the warning on a clip that is damaged: the first frame, and how many FFmpeg reported."""
        return (
            f"{self.path} is damaged from frame {self.damage[0]} on, in {counted(len(self.damage), 'frame')}: the decoder"
            " conceals missing data, which changes the scores of these frames and of frames that refer to them. FFmpeg says:"
            f" {self.damage_message}"
        )

    @property
    def falls_short(self) -> bool:
        """Return whether a clip has fewer frames than its file states, also without those that its edit list hides."""
        return self.claimed is not None and self.length is not None and self.length + self.hidden < self.claimed

    def missing_frames(self) -> str | None:
        """Return the warning on a clip that has fewer frames than its file states; None if it has them all."""
        if self.claimed is None or self.length is None or self.length >= self.claimed:
            return None
        hidden = f"{self.path}: its edit list hides {counted(self.hidden, 'frame')} of {self.claimed}" if self.hidden else ""
        if hidden and not self.falls_short:
            return f"{hidden}; the {self.length} that a player shows were scored"
        more = f"; {hidden}" if hidden else ""
        return f"{self.path} says that it has {counted(self.claimed, 'frame')}; only {self.length} could be decoded{more}"


def listed_frames(frames: Sequence[int]) -> str:
    """Return the numbers of frames for a message; only the first ones if there are many."""
    return listed([str(frame) for frame in frames], most=_MAX_NAMED_FRAMES)


# -- sources around a source ------------------------------------------------------------------------------------------

_PLANES = ("y", "cb", "cr")


class _Forwarded:
    """An attribute or a method that a wrapper takes from its source, unless one was set on the wrapper."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, wrapper: WrappedSource | None, owner: type[WrappedSource]) -> Any:
        return self if wrapper is None else getattr(wrapper.source, self._name)


class WrappedSource(FrameSource):
    """A source with the current attributes of the wrapped `source`, except for those that a subclass defines."""

    read_any_size = FrameSource.read_any_size  # by `read`, which a subclass may define

    def __init__(self, source: FrameSource) -> None:
        self.source = source

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read frames, as `FrameSource.read` says."""
        return self.source.read(numbers, targets)

    def close(self) -> None:
        """Close the source."""
        self.source.close()


ATTRIBUTES = frozenset(name for name in (*vars(FrameSource), *FrameSource.__annotations__) if not name.startswith("_"))
"""The names of all attributes and methods of a source."""

for _name in ATTRIBUTES - vars(WrappedSource).keys():
    setattr(WrappedSource, _name, _Forwarded(_name))


class Step(Protocol):
    """A change of each frame of a source. It may be called from several threads at once."""

    def info(self, before: VideoInfo) -> VideoInfo:
        """Return the facts about the stream after the step, with a note on the step."""

    def __call__(self, planes: Planes) -> Planes:
        """Return the planes after the step, possibly as views of the given planes."""


class ProcessedSource(WrappedSource):
    """A source whose frames are those of `source` after a step. Closing it closes `source`."""

    # `oriented` applies the first two before any other step, and steps run on the CPU.
    aperture = None
    orientation = None
    external = False
    read_external, decoded_frame = FrameSource.read_external, FrameSource.decoded_frame

    def __init__(self, source: FrameSource, step: Step) -> None:
        super().__init__(source)
        self._step = step
        self._info_after = lru_cache(1)(step.info)
        self._info_after(source.info)  # raises the errors of a step that is not possible
        self._lock = threading.Lock()
        self._first_out_of_range: int | None = None

    @property
    def info(self) -> VideoInfo:  # type: ignore[override] # an attribute of other sources
        """Return the facts about the stream after the step. The source may add facts while it is read."""
        return self._info_after(self.source.info)

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read frames, as `FrameSource.read` says."""
        memory = self.source.info.new_planes(len(targets[0]) if targets else 0)
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            frame = self._read_frame(number, memory)
            if frame is None:
                return count
            for place, plane in zip(target, frame, strict=True):
                place[:] = plane
        return len(numbers)

    def read_any_size(self, number: int, memory: Planes) -> Planes | None:
        """Read a frame of any size, as `FrameSource.read_any_size` says."""
        return self._read_frame(number, self.source.info.new_planes(len(memory)))

    def _read_frame(self, number: int, memory: Planes) -> Planes | None:
        """Return a frame after the step, which reads it from `memory`; None at the end, or if it sets `problem`."""
        planes = self.source.read_any_size(number, memory)
        return None if planes is None or self._is_out_of_range(number, planes) else self._step(planes)

    def _is_out_of_range(self, number: int, planes: Planes) -> bool:
        """Return whether a sample is larger than its depth allows, which could not be noticed after the step."""
        info = self.source.info
        for name, plane in zip(_PLANES, planes, strict=False):
            largest = largest_out_of_range(plane, 2**info.bits - 1)
            if largest is not None:
                with self._lock:  # several threads read: the first such frame counts
                    if self._first_out_of_range is None or number < self._first_out_of_range:
                        self.problem, self._first_out_of_range = sample_problem(info, number, name, largest), number
                return True
        return False

    def sample(self, count: int) -> Iterator[Planes]:
        """Yield the luma of frames from all over the stream."""
        return map(self._step, self.source.sample(count))
