"""Encode frames with PyAV, decode the stream at once, and return each frame with its decoded frame."""

from __future__ import annotations

import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import EncodeError
from ..scorer import Picture
from ..types import Doubles, plane_shapes
from ..utils.av_frames import interpolation, new_scaler, plane_of, scaled_plane
from ..utils.ffmpeg_log import parked
from ..utils.interruption import wait_for
from ..utils.thread_pool import ThreadPool, run_in_thread
from .defaults import RESAMPLER
from .output import VideoOutput
from .recipe import Recipe, ordinary_priority
from .source import Sample

MAX_SILENCE_S = 600.0
"""How long an encoder may take to open, to take a frame, or to give the next one that it holds at the end."""

PicturePair = tuple[Picture, Picture]
"""A frame as the encoder got it, and as a decoder gives it: its luma, or (Y, Cb, Cr)."""


@dataclass
class EncodedSample:
    """A sample as it was encoded."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    """The scores of its frames by name."""
    header_bytes: int = 0
    """The bytes of the first key frame that any encode has once, such as the encoder's name and options."""
    first_bytes: int = 0
    """The bytes of that first key frame, which is not counted if frames are encoded before the sample."""
    bytes: int = 0
    """The bytes of the frames."""
    other_bytes: int = 0
    """The bytes of all but key frames."""
    frames: int = 0
    key_frames: int = 0

    def column(self, name: str) -> Doubles:
        """Return one score of all frames."""
        return np.array(self.scores[name], np.float64)

    def add(self, packet: Any) -> None:
        """Count a packet."""
        self.frames += 1
        self.bytes += packet.size
        if packet.is_keyframe:
            self.key_frames += 1
        else:
            self.other_bytes += packet.size


def encoded_pairs(
    frames: Callable[[], Iterable[Any]],
    sample: Sample,
    recipe: Recipe,
    place: int,
    encoded: EncodedSample,
    output: VideoOutput | None = None,
    planes: int = 1,
) -> Iterator[PicturePair]:
    """Encode the frames of a sample, and yield each with its decoded frame; count the packets in `encoded`.

    `planes` is 1 for the luma of the frames, and 3 for (Y, Cb, Cr).
    Each call of `frames` gives the frames from the first one on, also those before and after the sample, which are encoded but
    neither yielded nor counted. The packets go to `output` if there is one. Raises EncodeError if the encoder fails, hangs or
    drops frames, or if its stream cannot be decoded.
    """
    with _encode_errors(recipe), ExitStack() as stack:
        run = None
        if recipe.two_passes:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vkssim-search-"))
            run = 2, _first_pass(prepared(frames(), recipe), recipe, place, folder)
        # The encoder is closed before the folder of its statistics is removed: only the decoding has it.
        encoder = _opened(recipe, place, run, output)
        yield from _decoded(encoder, prepared(frames(), recipe), recipe, sample, encoded, output, planes)


def header_bytes(recipe: Recipe, place: int) -> int:
    """Return the bytes of an encode of a single flat picture, which has little but headers. Raises EncodeError."""
    import av

    flat: Any = av.VideoFrame(*(recipe.size or (recipe.facts.width, recipe.facts.height)), recipe.format)
    for plane in flat.planes:
        plane.update(bytes(plane.buffer_size))
    flat.pts, flat.time_base = 0, recipe.facts.time_base
    with _encode_errors(recipe):
        return sum(packet.size for packet in _packets(_opened(recipe, place), [flat]))


@contextmanager
def _encode_errors(recipe: Recipe) -> Iterator[None]:
    """Raise EncodeError for the errors of FFmpeg."""
    import av

    try:
        yield
    except av.FFmpegError as error:
        raise EncodeError(f"{recipe.encoder.name} failed: {error.strerror or error}") from None


def _packets(encoder: Any, frames: Iterable[Any]) -> Generator[Any, None, None]:
    """Yield the packets that an encoder gives for frames, and those at the end. Raises EncodeError if it hangs.

    It works on a thread of its own, because an encoder that hangs cannot be ended, only left behind.
    """
    pool, ordinary = ThreadPool(1, "vkssim-encoder"), ordinary_priority()
    take, take_all = ordinary(next), ordinary(list)
    future: Future[Any] | None = None
    try:
        for frame in frames:
            future = pool.submit(take_all, encoder.encode_lazy(frame))
            yield from _result_in_time(future, encoder.name, "take a frame")

        packets = encoder.encode_lazy(None)
        while True:  # each has a time limit of its own, for an encoder may hold many frames
            future = pool.submit(take, packets, None)
            packet = _result_in_time(future, encoder.name, "give the next of its last frames")
            if packet is None:
                break
            yield packet
    finally:
        if future is None or future.done():
            pool.close()


def _result_in_time(future: Future[Any], name: str, doing: str) -> Any:
    """Return the result of a call of an encoder. Raises EncodeError if it shows no progress for MAX_SILENCE_S."""
    if not wait_for(future, MAX_SILENCE_S):
        raise EncodeError(f"{name} hangs: it did not {doing} within {MAX_SILENCE_S:g} s")
    return future.result()


def _opened(recipe: Recipe, place: int, run: tuple[int, str] | None = None, output: VideoOutput | None = None) -> Any:
    """Return an open encoder: a new one, or that of the container of an `output`.

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
    opening = run_in_thread("vkssim-encoder", ordinary_priority()(context.open))
    _result_in_time(opening, recipe.encoder.name, "open")
    return context


def _first_pass(frames: Iterable[tuple[Any, Any]], recipe: Recipe, place: int, folder: str) -> str:
    """Encode frames for the statistics alone, and return the name of their file."""
    statistics = str(Path(folder) / "pass")
    for _ in _packets(_opened(recipe, place, (1, statistics)), (frame for _, frame in frames)):
        pass
    return statistics  # the encoder writes the file when it is closed, as this function ends


def _decoded(
    encoder: Any,
    frames: Iterable[tuple[Any, Any]],
    recipe: Recipe,
    sample: Sample,
    encoded: EncodedSample,
    output: VideoOutput | None,
    planes: int,
) -> Iterator[PicturePair]:
    """Encode frames, each with the frame of the source, decode the stream at once, and yield the pairs of the sample."""
    import av

    name, decoder_name = recipe.encoder.name, recipe.encoder.decoder
    decoder: Any = av.CodecContext.create(decoder_name, "r")
    decoder.thread_type = "AUTO"
    if encoder.flags & av.codec.context.Flags.global_header:
        decoder.extradata = encoder.extradata
    # a rendition is scaled to the size of the source, as by ``vkssim score --scale reference``
    scalers, flags = [new_scaler() for _ in range(planes)], interpolation(RESAMPLER)
    shapes = plane_shapes(recipe.facts.width, recipe.facts.height, recipe.chroma)
    ticks: list[int] = []  # of the frames that the encoder got
    waiting: deque[Any] = deque()
    decoded = written = 0
    counted = range(sample.lead, sample.lead + sample.count)

    def taken() -> Iterator[Any]:
        for before, frame in frames:
            waiting.append(before)
            ticks.append(frame.pts)
            yield frame

    with parked(decoder), closing(_packets(encoder, taken())) as packets:
        for packet in chain(packets, [None]):  # at None the decoder ends
            if packet is not None:
                written += 1
                encoded.first_bytes = encoded.first_bytes or packet.size
                first, end = (ticks[number : number + 1] for number in (counted.start, counted.stop))  # if they came already
                if first and first[0] <= packet.pts and not (end and end[0] <= packet.pts):
                    encoded.add(packet)
            try:
                pictures = decoder.decode(packet)
            except av.FFmpegError as error:
                trouble = f"{decoder_name} cannot decode the stream of {name}: {error.strerror or error}"
                raise EncodeError(trouble) from None
            for after in pictures:
                if not waiting:
                    raise EncodeError(f"{name} gives more frames than it got")
                before = waiting.popleft()
                if decoded in counted:
                    whole, coded = (tuple(plane_of(frame, number) for number in range(planes)) for frame in (before, after))
                    if recipe.scaled is not None:
                        coded = tuple(
                            scaled_plane(plane, width, height, recipe.bits, scaler, flags)
                            for plane, (height, width), scaler in zip(coded, shapes, scalers, strict=False)
                        )
                    yield (whole, coded) if planes > 1 else (whole[0], coded[0])
                decoded += 1
            if packet is not None and output is not None:
                output.mux(packet)
    if waiting:
        raise EncodeError(
            f"{name} drops frames: {len(waiting)} of {len(ticks)} never came out of it"
            if written < len(ticks)
            else f"{decoder_name} gives no picture for {len(waiting)} of {written} frames of {name}"
        )


def prepared(frames: Iterable[Any], recipe: Recipe) -> Iterator[tuple[Any, Any]]:
    """Yield each frame of the source in the format of the recipe, and the frame to encode: the same, or a smaller one.

    Side data that would bind the encoder to the decisions of the source's encoder are removed.
    """
    span = dict.fromkeys(("src_color_range", "dst_color_range"), recipe.facts.colours[3])
    convert, scale, flags = new_scaler(), new_scaler(), interpolation(RESAMPLER)
    for frame in frames:
        made = small = frame
        if frame.format.name != recipe.format:
            made = small = convert(frame, format=recipe.format, **span)
        if recipe.size not in (None, (made.width, made.height)):
            small = scale(made, *recipe.size, interpolation=flags, **span)
        small.pts, small.time_base = frame.pts, frame.time_base
        small.pict_type = 0  # libx264 would put its key frames where the source has them
        yield made, small
