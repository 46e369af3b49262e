"""Encode frames with PyAV, decode what comes out, and give back each frame with the one that it became."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt

from ..errors import EncodeError
from ..frames.decode.ffmpeg_log import parked
from ..frames.picture.pixels import new_scaler, plane_of
from ..frames.picture.steps import Scale, interpolation
from ..utils.interruption import wait_for
from ..utils.thread_pool import ThreadPool
from .defaults import RESAMPLER
from .output import VideoOutput
from .recipe import Recipe, ordinary_priority
from .samples import Sample

MOST_SECONDS = 600.0
"""How long an encoder may take for a frame, or for all that it still holds after the last one."""

LumaPair = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""The luma of a frame as the encoder got it, and as a decoder gives it."""

OpenFrames = Callable[[], Iterable[Any]]
"""A function that gives the frames to encode, from the first one on, each time it is called."""


@dataclass
class Stream:
    """The output of an encoder for a sample: the bytes and the number of key frames, and of other frames.

    `header_bytes` is the part of the first key frame that any encode has once, such as the encoder's name and options.
    `first_bytes` is that first key frame, which is not counted where frames are encoded before the sample.
    """

    header_bytes: int = 0
    first_bytes: int = 0
    key_bytes: int = 0
    other_bytes: int = 0
    key_frames: int = 0
    frames: int = 0

    @property
    def bytes(self) -> int:
        """Return the bytes of all frames."""
        return self.key_bytes + self.other_bytes

    def add(self, packet: Any) -> None:
        """Count a packet."""
        self.frames += 1
        if packet.is_keyframe:
            self.key_frames += 1
            self.key_bytes += packet.size
        else:
            self.other_bytes += packet.size


def encoded_pairs(
    frames: OpenFrames, sample: Sample, recipe: Recipe, place: int, stream: Stream, output: VideoOutput | None = None
) -> Iterator[LumaPair]:
    """Encode the frames of a sample, and yield each with its decoded frame; count the packets in `stream`.

    `frames` also gives the frames before and after the sample, which are encoded but neither yielded nor counted. The packets
    go to `output` if there is one. As many frames are held as the encoder looks ahead. Raises EncodeError if the encoder fails,
    hangs or drops frames, or if its stream cannot be decoded.
    """
    with _encode_errors(recipe), ExitStack() as stack:
        run = None
        if recipe.two_passes:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vkssim-search-"))
            run = 2, _first_pass(prepared(frames(), recipe), recipe, place, folder)
        # The encoder is closed before the folder of its statistics is removed: only the decoding has it.
        yield from _Decoding(_opened(recipe, place, run, output), recipe, sample, stream, output).run(
            prepared(frames(), recipe)
        )


def header_bytes(recipe: Recipe, place: int) -> int:
    """Return the bytes of an encode of a single flat picture, which has little but headers. Raises EncodeError."""
    import av

    flat: Any = av.VideoFrame(*(recipe.size or (recipe.facts.width, recipe.facts.height)), recipe.format)
    for plane in flat.planes:
        plane.update(bytes(plane.buffer_size))
    flat.pts, flat.time_base = 0, recipe.facts.time_base
    with _encode_errors(recipe), EncoderThread(_opened(recipe, place)) as thread:
        return sum(packet.size for packet in [*thread.encode(flat), *thread.encode(None)])


@contextmanager
def _encode_errors(recipe: Recipe) -> Iterator[None]:
    """Raise EncodeError for the errors of FFmpeg."""
    import av

    try:
        yield
    except av.FFmpegError as error:
        raise EncodeError(f"{recipe.encoder.name} failed: {error.strerror or error}") from None


class EncoderThread:
    """A thread on which an encoder works, because one that hangs cannot be ended, only left behind; use it with `with`."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._pool = ThreadPool(1, "vkssim-encoder")
        self._hangs = False

    def encode(self, frame: Any) -> list[Any]:
        """Return the packets that the encoder gives for a frame, or for None at the end. Raises EncodeError if it hangs."""
        future = self._pool.submit(self._packets, frame)
        if not wait_for(future, MOST_SECONDS):
            self._hangs = True
            doing = "encode the last frames" if frame is None else "take a frame"
            raise EncodeError(f"{self._encoder.name} hangs: it did not {doing} within {MOST_SECONDS:g} s")
        return future.result()

    def _packets(self, frame: Any) -> list[Any]:
        with ordinary_priority():
            packets: list[Any] = self._encoder.encode(frame)
        return packets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._hangs:
            self._pool.close()


def _opened(recipe: Recipe, place: int, run: tuple[int, str] | None = None, output: VideoOutput | None = None) -> Any:
    with ordinary_priority():
        encoder = _context(recipe, place, run, output)
        encoder.open()
    return encoder


def _context(recipe: Recipe, place: int, run: tuple[int, str] | None, output: VideoOutput | None) -> Any:
    """Return the context of an encoder, ready to be opened: a new one, or that of the container of an `output`.

    The headers are extradata, as in a file, unless the output is made of parts, which have them in their packets.
    """
    import av

    made = None if output is None else output.encoder
    context: Any = av.CodecContext.create(recipe.encoder.name, "w") if made is None else made
    recipe.set_up(context, place, run)
    if output is None:
        context.flags |= av.codec.context.Flags.global_header
    if run is not None:
        context.flags |= av.codec.context.Flags.pass1 if run[0] == 1 else av.codec.context.Flags.pass2
    return context


def _first_pass(frames: Iterable[tuple[Any, Any]], recipe: Recipe, place: int, folder: str) -> str:
    """Encode frames for the statistics alone, and return the name of their file."""
    statistics = str(Path(folder) / "pass")
    with EncoderThread(_opened(recipe, place, (1, statistics))) as thread:
        for _, frame in frames:
            thread.encode(frame)
        thread.encode(None)
    return statistics  # the encoder writes the file when it is closed, as this function ends


class _Decoding:
    """An encode whose stream is decoded at once: `run` yields each frame of a sample with the frame that became of it.

    The packets of the sample are counted in `stream`, and all packets go to `output`, if there is one.
    """

    def __init__(self, encoder: Any, recipe: Recipe, sample: Sample, stream: Stream, output: VideoOutput | None) -> None:
        import av

        self.decoder: Any = av.CodecContext.create(recipe.encoder.decoder, "r")
        self.decoder.thread_type = "AUTO"
        if encoder.flags & av.codec.context.Flags.global_header:
            self.decoder.extradata = encoder.extradata
        self._encoder = encoder
        self._kind = recipe.encoder
        self._enlarge = enlarger(recipe)
        self._counted = range(sample.lead, sample.lead + sample.count)
        self._ticks: list[int] = []  # of the frames that the encoder got
        self._waiting: deque[Any] = deque()
        self._decoded = 0
        self._written = 0
        self._stream = stream
        self._output = output

    def run(self, frames: Iterable[tuple[Any, Any]]) -> Iterator[LumaPair]:
        """Encode frames, each with the frame of the source, and yield the pairs. Raises EncodeError."""
        with parked(self.decoder):
            with EncoderThread(self._encoder) as thread:
                for before, frame in frames:
                    self._waiting.append(before)
                    self._ticks.append(frame.pts)
                    yield from self._pairs(thread.encode(frame))
                yield from self._pairs(thread.encode(None))
            yield from self._pairs([None])
        if self._waiting:
            lost, fed = len(self._waiting), len(self._ticks)
            raise EncodeError(
                f"{self._kind.name} drops frames: {lost} of {fed} never came out of it"
                if self._written < fed
                else f"{self._kind.decoder} gives no picture for {lost} of {self._written} frames of {self._kind.name}"
            )

    def _pairs(self, packets: Iterable[Any]) -> Iterator[LumaPair]:
        """Yield the pairs that the decoder gives for packets, or for None at the end."""
        for packet in packets:
            if packet is not None:
                self._written += 1
                self._stream.first_bytes = self._stream.first_bytes or packet.size
                if self._is_counted(packet.pts):
                    self._stream.add(packet)
            for after in self._decode(packet):
                if not self._waiting:
                    raise EncodeError(f"{self._kind.name} gives more frames than it got")
                before = self._waiting.popleft()
                if self._decoded in self._counted:
                    yield plane_of(before, 0), self._enlarge(plane_of(after, 0))
                self._decoded += 1
            if packet is not None and self._output is not None:
                self._output.mux(packet)

    def _is_counted(self, tick: int) -> bool:
        """Return whether a packet is of the sample, by its presentation time; the encoder may not have got its end yet."""
        first, end = (self._ticks[number : number + 1] for number in (self._counted.start, self._counted.stop))
        return bool(first) and first[0] <= tick and not (end and end[0] <= tick)

    def _decode(self, packet: Any) -> list[Any]:
        import av

        try:
            pictures: list[Any] = self.decoder.decode(packet)
        except av.FFmpegError as error:
            said = error.strerror or error
            raise EncodeError(f"{self._kind.decoder} cannot decode the stream of {self._kind.name}: {said}") from None
        return pictures


def prepared(frames: Iterable[Any], recipe: Recipe) -> Iterator[tuple[Any, Any]]:
    """Yield each frame in the format of the recipe, and the frame to encode: the same, or a smaller one.

    Side data that would bind the encoder to the decisions of the source's encoder are removed.
    """
    span = recipe.facts.colours[3]
    convert, scale = new_scaler(), new_scaler()
    for frame in frames:
        made = small = frame
        if frame.format.name != recipe.format:
            made = small = convert(frame, format=recipe.format, src_color_range=span, dst_color_range=span)
        if recipe.size not in (None, (made.width, made.height)):
            width, height = recipe.size
            small = scale(
                made, width, height, src_color_range=span, dst_color_range=span, interpolation=interpolation(RESAMPLER)
            )
        small.pts, small.time_base = frame.pts, frame.time_base
        small.pict_type = 0  # libx264 would put its key frames where the source has them
        yield made, small


def enlarger(recipe: Recipe) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    """Return a function that scales a rendition's luma to the size of the source, as ``vkssim score --scale reference``."""
    if recipe.scaled is None:
        return lambda plane: plane
    scale = Scale(recipe.facts.width, recipe.facts.height, RESAMPLER, recipe.bits, "400")
    return lambda plane: scale((plane,))[0]
