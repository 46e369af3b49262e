"""Choose who decodes a clip, the CPU or hardware, by its first frame, and say why (docs/adr/0010)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...errors import DecoderBusyError, DeviceError, InputError
from ...utils.interruption import result_of
from ...utils.thread_pool import closing_on_error, run_in_thread
from ..pixels import format_name, pixel_format, stated_colours
from .clip_decoder import FAILURES, ClipDecoder
from .decoder import AT_FIRST_KEY, Begin, UndecodableError, reason
from .description import ClipDescription, describe
from .hardware import FORMATS, HardwareDecoder

START_TIMEOUT_S = 1.0
"""The longest wait for a decoder that is being started, many times as long as usual."""

_GRAIN_ON_CPU = "it has film grain, which only the CPU leaves out, and `film_grain=off` is given"

_opening, _starting = threading.Lock(), threading.Lock()

_log = logging.getLogger("vkssim")


@dataclass
class Choice:
    """The decoder of a clip, which has decoded the first frame."""

    clip: ClipDecoder
    facts: ClipDescription
    first: Any
    """The first frame, an av.VideoFrame."""
    hardware: HardwareDecoder | None = None
    """The hardware that decodes the clip; None if the CPU does."""
    reason: str | None = None
    """Why the preferred hardware does not decode it; None if it does, or if none was preferred."""


def choose_decoder(new_clip: Callable[[], ClipDecoder], preferred: HardwareDecoder | None, key: Hashable | None) -> Choice:
    """Return the decoder of a clip. `new_clip` makes one that is not open yet, and `key` identifies the content of the file.

    Hardware decodes a clip if it is preferred, can decode it, and gives the CPU's first frame, with the same samples. They are
    compared once per key that is not None. Raises InputError if the clip cannot be decoded, also if the hardware that is
    required cannot decode it, and DecoderBusyError.
    """
    if preferred is not None and not preferred.is_offered:
        _log.debug("the FFmpeg of PyAV was built without %s", preferred.kind)
        preferred = None
    if preferred is None:
        choice = _by_cpu(new_clip())
    else:
        choice = _opened_again(new_clip(), preferred, key) or _compared(new_clip(), new_clip(), preferred, key)

    if choice.reason is not None and choice.hardware is None and preferred is not None and preferred.required:
        choice.clip.close()
        raise InputError(
            f"{choice.clip.path}: the {preferred.kind} decoder cannot decode it: {choice.reason}. `decode=cpu` decodes it on"
            " the CPU"
        )
    decoder = "the CPU" if choice.hardware is None else choice.hardware.kind
    why = f", not by {preferred.kind}: {choice.reason}" if preferred is not None and choice.reason is not None else ""
    _log.info("%s: decoded by %s%s", choice.clip.path, decoder, why)
    return choice


def _by_cpu(clip: ClipDecoder) -> Choice:
    with closing_on_error(clip):
        first = clip.begin()
        return Choice(clip, describe(clip, first), first)


def _opened_again(clip: ClipDecoder, hardware: HardwareDecoder, key: Hashable | None) -> Choice | None:
    """Let hardware alone decode a clip that was compared before; return None if it was not, or if hardware fails now."""
    facts, begin = hardware.compared.get(key, (None, None))
    if facts is None or (facts.has_grain and not clip.adds_grain):
        return None
    with closing_on_error(clip):
        first, why = start_by_hardware(clip, facts, None, hardware, begin)
    if why is None:
        return Choice(clip, facts, first, hardware)
    clip.close()
    return None


def _compared(clip: ClipDecoder, by_hardware: ClipDecoder, hardware: HardwareDecoder, key: Hashable | None) -> Choice:
    """Decode the first frame by the CPU, with `clip`, and by hardware, with `by_hardware`, and choose one of them."""
    # It takes 0.1 s, in which the CPU decodes its own frame.
    early, is_chosen = run_in_thread("vkssim-hardware", partial(start_early, by_hardware, hardware)), False
    try:
        with closing_on_error(clip):
            for first in clip.first_frames():
                facts, begin = describe(clip, first), clip.decoder.begin
                if hardware.skips(facts.codec.canonical_name, moving=facts.info.fps is not None):
                    why = None
                    continue
                if facts.has_grain and not clip.adds_grain:
                    why = _GRAIN_ON_CPU
                else:
                    why = hardware.refuses(clip.stream.codec_context, facts.pixels, facts.size, facts.format_name)
                if why is None:
                    frame, why = start_by_hardware(by_hardware, facts, first, hardware, begin, early)
                if why is None:
                    is_chosen = True
                    clip.close()
                    if key is not None:
                        hardware.note_compared(key, (facts, begin))
                    return Choice(by_hardware, facts, frame, hardware)
            return Choice(clip, facts, clip.continue_from(first), None, why)
    finally:
        if not is_chosen:
            early.add_done_callback(lambda _: by_hardware.close())


# -- start ------------------------------------------------------------------------------------------------------------


def start_early(clip: ClipDecoder, hardware: HardwareDecoder) -> Any:
    """Return the first frame of a clip for `start_by_hardware`, decoded by hardware; None if that refused it, or failed."""
    with suppress(*FAILURES, ValueError, RuntimeError, UndecodableError, InputError, DeviceError):
        codec = clip.open_stream()
        # The container is usually right. The frames decide.
        pixels = pixel_format(clip.path, codec.pix_fmt)
        if hardware.refuses(codec, pixels, (codec.width, codec.height), codec.pix_fmt) is None:
            return _start(clip, AT_FIRST_KEY, hardware)
    return None


def _start(clip: ClipDecoder, begin: Begin, hardware: HardwareDecoder) -> Any:
    """Return the first frame of a clip, by a decoder that another clip has left open, or by a new one."""
    if clip.take_over(begin, hardware):
        return clip.decoder.next()
    with _turn(_opening):  # while the decoder of the other clip is being started
        clip.start(threads=False, begin=begin, hardware=hardware)
    with _turn(_starting):
        return clip.decoder.next()


def start_by_hardware(
    clip: ClipDecoder,
    facts: ClipDescription,
    first: Any,
    hardware: HardwareDecoder,
    begin: Begin,
    early: Future[Any] | None = None,
) -> tuple[Any, str | None]:
    """Decode the first frame of a clip by hardware, and return it; if hardware cannot decode the clip, with the reason.

    `first` is the CPU's first frame, to which `facts` belong; None if they are from an earlier comparison. Its samples are
    compared once per kind of stream. `early` is the start that `start_early` made, which is not used if decoding has to
    begin elsewhere. Raises DecoderBusyError.
    """
    frame = None if early is None else result_of(early)
    clip.codec = facts.codec
    try:
        if frame is None or begin != AT_FIRST_KEY:
            frame = _start(clip, begin, hardware)
        difference = _difference(clip, facts, first, frame, hardware)
        clip.decoder.has_failed |= difference is not None
        return frame, difference
    except RuntimeError:  # of PyAV, for a codec without such a decoder
        return None, f"FFmpeg has none for {facts.codec.canonical_name}"
    except UndecodableError as error:
        return None, f"it sees damage in the first frame ({error})"
    except (*FAILURES, ValueError, InputError, DeviceError) as error:
        if hardware.idle.close():  # they had the memory, or the driver allows no more
            return start_by_hardware(clip, facts, first, hardware, begin)
        problem = f"its driver or its device refuses ({reason(error)})"
        if hardware.shared:
            raise DecoderBusyError(f"the {hardware.kind} decoder decodes fewer clips in parallel: {problem}") from None
        return None, problem


@contextmanager
def _turn(lock: threading.Lock) -> Iterator[None]:
    """Open a file or start a decoder after the one before it, unless that takes too long, as from a lost network share.

    A driver starts decoders one at a time. If it has many to start at once, all of them start late. PyAV keeps Python's lock
    while it opens a file for hardware, so all threads wait if the driver is busy with another decoder.
    """
    has_turn = lock.acquire(timeout=START_TIMEOUT_S)
    try:
        yield
    finally:
        if has_turn:
            lock.release()


def _difference(clip: ClipDecoder, facts: ClipDescription, first: Any, frame: Any, hardware: HardwareDecoder) -> str | None:
    """Return how the first frame of hardware differs from the CPU's, if that is given; None if all samples are equal."""
    if frame is None:
        return "it returns no frame"
    expected, name = FORMATS[facts.pixels.bits], format_name(frame)
    time = frame.pts if first is None else first.pts
    if (name, frame.pts) != (expected, time) or not hardware.has_size(frame, *facts.size):
        return f"its first frame is {frame.width}x{frame.height} {name} at {frame.pts}"
    if first is None:
        return None
    if stated_colours(frame) != stated_colours(first):
        return "its first frame has other colours"
    if clip.kind in hardware.compared:
        return None

    by_cpu, by_hardware = facts.info.new_planes(), facts.info.new_planes()
    facts.pixels.copy(first, by_cpu)
    pixel_format(clip.path, expected).copy(frame, by_hardware, hardware.surfaces)
    if not all(map(np.array_equal, by_cpu, by_hardware)):
        return "its first frame has other samples"
    hardware.note_compared(clip.kind, True)
    return None
