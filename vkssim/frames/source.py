"""Declare what every source of frames offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from ..errors import InputError, RangeError
from ..types import ExternalFrame, Planes
from ..utils.interruption import check
from .fingerprint import Opened
from .info import ClipFacts, VideoInfo, VideoPackets
from .picture.colour import Colour
from .picture.crop import Crop
from .picture.orientation import Orientation
from .picture.surfaces import DecodedFrame

_UNKNOWN_LENGTH_STEP = 24  # frames between two samples of a stream of unknown length


def sample_problem(info: VideoInfo, frame: int, plane: str, value: int) -> InputError:
    """Return the error for a frame that has a sample larger than its depth allows, in the plane of that name."""
    return InputError(
        f"{info.path}: frame {frame} has a sample of {value} in its plane {plane}, and {2**info.bits - 1} is the largest of"
        f" {info.bits} bits; the depth or the size is another one, or the samples do not lie in the low bits of their two bytes"
    )


class SeekIndex(Protocol):
    """Hold the positions of a stream's frames, in the bytes or ticks of its source. Both methods count frames from 0."""

    frames: int

    def before(self, number: int) -> int:
        """Return the last frame up to that number which needs none before it."""

    def place(self, number: int) -> int:
        """Return where a frame begins, for `FrameSource.seek`."""


class FrameSource(ABC):
    """Read a stream of frames; use it with `with`.

    A source that is `concurrent` may be read from several threads at once and in any order; any other one is read in order, by
    one thread.
    """

    info: VideoInfo
    concurrent = False
    problem: InputError | None = None
    """Why the stream ended before its time, once that is known; the frames before are good."""
    length: int | None = None
    """How many frames there are, once that is known: at the start, or when reading has met the end."""
    damage: Mapping[int, str] = MappingProxyType({})
    """What the decoder says of damage, by the number of the frame: those read so far in which it made up missing parts."""
    remarks: Sequence[tuple[int, str]] = ()
    """Further warnings on the frames read so far, each with the number of the frame where it begins."""
    stream: int | None = None
    """Which stream of a container was asked for, by its index; None where it was chosen."""
    opened: Opened | None = None
    """The state of the file when it was opened; None where the source is no file."""
    bytes_read = 0
    """How many bytes of the file were read for its frames so far."""
    file_bytes: int | None = None
    """How many bytes the file has, or all files of a sequence together; None for a pipe."""
    aperture: Crop | None = None
    """The rectangle of the frames that is visible, where that is not all of them."""
    orientation: Orientation | None = None
    """How frames are to be turned before they are shown."""
    external = False
    """True where `read_external` can write frames to memory of the GPU."""
    is_rgb = False
    """True where pictures are R'G'B', so that `convert_to` has to choose the Y'CbCr that they become."""

    def convert_to(self, colour: Colour) -> None:  # noqa: B027 - only R'G'B' has a choice
        """Choose the Y'CbCr that R'G'B' becomes; to be called before the first frame is read."""

    @property
    def expected(self) -> int | None:
        """Return how many frames there should be, going by what the stream says of itself or by its size; None for no idea."""
        return self.info.frames

    @abstractmethod
    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """Read the frames of these numbers, counted from 0 and rising, into (y,) or (y, cb, cr), each an (H, W) array.

        Return how many frames there were: fewer than asked for at the end of the stream.
        """

    @property
    def at_start(self) -> bool:
        """Return whether the source is open and none of its frames was read; False where that is not known."""
        return False

    def read_external(self, numbers: Sequence[int], targets: Sequence[ExternalFrame]) -> int:
        """Read frames as `read` does, into memory of the GPU that decodes."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            frame = self.decoded_frame(number)
            if frame is None:
                return count
            frame.write(target)
        return len(numbers)

    def decoded_frame(self, number: int) -> DecodedFrame | None:
        """Return a frame of an `external` source before it is copied anywhere; None where the stream ends before it.

        Frames are asked for in rising order. A decoder has few surfaces, so a frame has to be let go soon.
        """
        raise NotImplementedError(f"the frames of {self.info.path} are not on a GPU")

    def time(self, number: int) -> float | None:
        """Return when a frame that was read is shown, in seconds from the first frame; None where the stream does not tell."""
        return None if self.info.fps is None else float(number / self.info.fps)

    def times(self) -> npt.NDArray[np.float64] | None:
        """Return the presentation times of all frames, (frames,) float64, found without decoding.

        It is None where they cannot be known beforehand.
        """
        if self.info.fps is None or self.expected is None:
            return None
        return np.arange(self.expected) / float(self.info.fps)

    def seek_index(self) -> SeekIndex | None:
        """Return where the source can be read from, found without decoding.

        It is None where only reading from the start on is sure to be right.
        """
        return None

    def seek(self, number: int, place: int) -> int | None:
        """Read on from that frame, which begins at that place of `seek_index`; gives its fingerprint, see `verify_boundary`.

        Raises RangeError where it turns out not to be there.
        """
        raise RangeError(f"{self.info.path} can only be read from its start on")

    def verify_boundary(self, number: int, last: int) -> int | None:
        """Check that the last of the frames read was at that position of `seek_index`. Raises RangeError.

        Return the fingerprint of the frame of that number, by which `seek` elsewhere is known to have found the same frame;
        None where frames cannot depend on others.
        """
        return None

    def clip_facts(self) -> ClipFacts:
        """Return what is known of the clip itself without reading it, whatever is done to its pictures."""
        info = self.info
        return ClipFacts(
            container=info.kind,
            codec="rawvideo",
            decoder=info.kind,
            width=info.width,
            height=info.height,
            bits=info.bits,
            chroma=info.chroma,
            matrix=info.matrix,
            range=info.range,
            transfer=info.transfer,
            field_order=info.field_order,
            fps=None if info.fps is None else round(float(info.fps), 6),
            frames=info.frames,
            file_bytes=self.file_bytes,
        )

    def packets(self) -> VideoPackets | None:
        """Return all packets of the video stream together; None where it is not compressed.

        Packets that were not read for its frames are read for this, from the file opened once more.
        """
        return None

    def hidden_frames(self) -> int:
        """Return how many frames a container has that an edit list hides: they are decoded only since others refer to them.

        Packets that were not read for its frames are read for this, from the file opened once more.
        """
        return 0

    def sample(self, count: int) -> Iterator[Planes]:
        """Yield the luma of at most that many frames from all over the stream, which cannot be read otherwise afterwards."""
        step = _UNKNOWN_LENGTH_STEP if self.expected is None else max(1, self.expected // count)
        target = self.info.new_planes(1)
        for number in range(0, count * step, step):
            if not self.read([number], [target]):
                return
            yield target

    def give_up(self) -> None:  # noqa: B027 - only pipes are waited for
        """End a `read` that waits for data which may never come; to be called from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class SequentialSource(FrameSource):
    """Read a stream that has only a next frame: frames between those asked for are skipped."""

    def __init__(self) -> None:
        self._position = 0

    @abstractmethod
    def _next(self, target: Planes | None) -> bool:
        """Read the next frame, or pass over it where there is no target; False at the end. May set `problem`."""

    def read(self, numbers: Sequence[int], targets: Sequence[Planes]) -> int:
        """See FrameSource.read."""
        for count, (number, target) in enumerate(zip(numbers, targets, strict=True)):
            if not self._read_to(number, target):
                return count
        return len(numbers)

    def _read_to(self, number: int, target: Planes | None) -> bool:
        """Pass over what comes before that frame, read it; False where the stream ends before."""
        if self._position > number:
            return True
        return self._pass_to(number) and self._advance(lambda: self._next(target))

    def _pass_to(self, number: int) -> bool:
        """Pass over what comes before a frame; False where the stream ends before."""
        while self._position < number:
            if not self._advance(lambda: self._next(None)):
                return False
        return True

    def _advance(self, read: Callable[[], bool]) -> bool:
        """Read the next frame by a function; False where the stream ends."""
        check()
        if not read():
            self.length = self._position
            return False
        self._position += 1
        return True

    def verify_boundary(self, number: int, last: int) -> int | None:
        """See FrameSource.verify_boundary."""
        if not (self._read_to(number - 1, None) and self._is_behind(last)):
            raise RangeError(f"{self.info.path}: its frames are not where they were expected before frame {number}")
        return self._following()

    def _is_behind(self, _place: int) -> bool:
        """Return whether the frame at that place was the last one that was read."""
        return False

    def _following(self) -> int | None:
        """Return the fingerprint of the next frame, where frames depend on others."""
        return None


def check_unchanged(source: FrameSource) -> None:
    """Raise InputError where the file of a source is another one than when it was opened."""
    if source.opened is not None and source.opened.changed:
        raise changed_error(source.info.path, source.problem)


def changed_error(path: str, problem: InputError | None = None) -> InputError:
    """Return the error for a file that was changed while it was read, with the problem that reading it met."""
    met = "" if problem is None else f" ({problem})"
    return InputError(
        f"{path} was changed while it was read{met}: it was written to, replaced or removed, and its scores may be of two"
        " files. Score it again when nothing writes to it any more"
    )
