"""Hardware decoders: how FFmpeg opens one, which streams it can decode, and which decoders stay open (docs/adr/0010)."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol
from weakref import WeakSet

from ...errors import OptionError
from ...utils.choices import DECODE
from ..info import ClipFacts
from ..pixels import PixelFormat, SurfaceCopy

FORMATS = {8: "nv12", 10: "p010le"}
"""The pixel formats of 4:2:0 frames copied from a decoder's surface, by their depth in bits."""

EXACT = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
"""The codecs whose standards define every bit of a frame, by FFmpeg's names. Other standards leave a rounding open."""

UNCOMPRESSED = ("rawvideo", "wrapped_avframe")
"""The codecs whose packets are the frames themselves, by FFmpeg's names."""

_MAX_COMPARED = 256  # clips: workers open the same ones at about the same time

_MAX_IDLE = 16
"""The largest number of decoders without a clip."""

_MAX_IDLE_PIXELS = _MAX_IDLE * 1920 * 1088
"""The largest total of their frame sizes. A decoder keeps the memory of some 20 frames. One is kept, whatever its size."""


@dataclass(frozen=True)
class CodedVideo:
    """A stream as a driver sees it, with its coded frames before cropping."""

    codec: str
    """FFmpeg's name."""
    chroma: str
    bits: int
    width: int
    height: int


class Driver(Protocol):
    """The decoder of one GPU, with its abilities, before it is opened."""

    @property
    def device(self) -> str | None:
        """Return FFmpeg's name of the GPU; None if the driver does not report it, so that FFmpeg takes the first GPU."""

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """Return the method to copy frames, which then stay in memory of the GPU; None if FFmpeg copies them to the host."""

    def refuses(self, video: CodedVideo) -> str | None:
        """Return the reason why the GPU cannot decode a stream; None if it can, or if that is not known."""


class IdleDecoders:
    """Decoders that stay open after their clips, as codec contexts of PyAV. The next clip of the same kind takes one over.

    A driver opens or closes one decoder at a time for the whole machine, in 0.1 s, so short clips would wait for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[tuple[Any, ...], Any]] = []
        self._process = os.getpid()
        with _adding:
            _all_idle.add(self)

    def has(self, codec: str) -> bool:
        """Return whether there is a decoder of a codec, by its canonical name."""
        with self._lock:
            return any(kind[0] == codec for kind, _ in self._idle)

    def take(self, kind: Hashable) -> Any:
        """Return a decoder of a kind, which is the caller's now; None if there is none."""
        with self._lock:
            number = next((number for number, (other, _) in enumerate(self._idle) if other == kind), None)
            return None if number is None else self._idle.pop(number)[1]

    def put(self, kind: tuple[Any, ...], codec: Any) -> None:
        """Keep a decoder that works, and that nobody uses any longer. A forked child cannot use those of its parent."""
        from av import FFmpegError

        if os.getpid() != self._process:
            return
        try:
            codec.flush_buffers()
        except FFmpegError:
            return
        with self._lock:
            idle, dropped = [*self._idle, (kind, codec)], []
            while len(idle) > _MAX_IDLE or (len(idle) > 1 and sum(map(_pixels, idle)) > _MAX_IDLE_PIXELS):
                dropped.append(idle.pop(0))
            self._idle = idle
        del idle, dropped, codec  # they are closed here, while the lock is free

    def close(self) -> bool:
        """Close all, and return whether there was one: it may have had the memory that a new one needs."""
        with self._lock:
            idle, self._idle = self._idle, []
        return bool(idle)

    def abandon(self) -> None:
        """Leave all open: a forked child lacks the threads for which freeing would wait, and the end of a process frees all."""
        for _, codec in self._idle:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(codec))
        self._lock, self._idle = threading.Lock(), []


def _pixels(idle: tuple[tuple[Any, ...], Any]) -> int:
    (_, width, height, *_), _ = idle
    return int(width * height)


_all_idle: WeakSet[IdleDecoders] = WeakSet()
_adding = threading.Lock()


def close_idle_decoders() -> bool:
    """Close all decoders of this process that no clip uses, for their memory. Return whether there was one."""
    with _adding:
        every = list(_all_idle)
    closed = [idle.close() for idle in every]
    return any(closed)


@atexit.register
def _abandon_all() -> None:
    for idle in _all_idle:
        idle.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


_TAKE_PARAMETERS = ("h264", "hevc")
"""Decoders that read parameter sets beside a packet (AV_PKT_DATA_NEW_EXTRADATA)."""


def stream_kind(codec: Any, *, adds_grain: bool) -> tuple[Hashable, ...]:
    """Return the properties of a stream that its decoder depends on. `codec` is a codec context that is not open yet.

    The first are the name of the codec, the width and the height. The last are its parameter sets, which an open decoder takes
    over from the next stream if it can; see `Decoder`.
    """
    colours = codec.color_range, codec.colorspace, codec.color_primaries, codec.color_trc
    order = codec.profile, codec.reorder_depth
    name, parameters = codec.codec.canonical_name, codec.extradata or b""
    form = parameters[:1] if name in _TAKE_PARAMETERS else parameters  # 1 if units begin with their lengths, 0 with start codes
    return name, codec.width, codec.height, *order, *colours, adds_grain, form, parameters


@dataclass(frozen=True)
class HardwareDecoder:
    """A hardware decoder, which `choice` starts for the clips that it can decode."""

    kind: str
    """FFmpeg's name of its API."""
    gpu: Driver | None = None
    """The driver of the GPU; None for the first one."""
    required: bool = True
    """False if clips that it cannot decode are left to the CPU."""
    shared: bool = False
    """True if it already decodes on another thread, so that DecoderBusyError is raised if it cannot be reopened."""
    compared: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)
    """For each clip whose first frame it has decoded to the CPU's samples, all that is needed to open it again; True for each
    kind of stream with its parameter sets."""
    idle: IdleDecoders = field(default_factory=IdleDecoders, compare=False, repr=False)
    """The decoders that stay open for further clips."""

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """Return the method to copy frames, as `Driver.surfaces`."""
        return None if self.gpu is None else self.gpu.surfaces

    @property
    def is_offered(self) -> bool:
        """Return whether the installed FFmpeg was built with it. `check_decode` ensures that for a required one."""
        return self.required or self.kind in offered()

    def skips(self, codec: str, *, moving: bool) -> bool:
        """Return whether a clip gains nothing from hardware: a picture, or uncompressed frames, which are only copied."""
        return not self.required and (not moving or codec in UNCOMPRESSED)

    def refuses(self, codec: Any, pixels: PixelFormat, size: tuple[int, int], name: str) -> str | None:
        """Return the reason why it does not decode the stream of a codec context; None if it does.

        `size` is that of its frames, which have the pixel format `name`.
        """
        # The size before cropping is not known for each codec, but is never smaller.
        width, height = max(codec.coded_width, size[0]), max(codec.coded_height, size[1])
        video = CodedVideo(codec.codec.canonical_name, pixels.chroma, pixels.bits, width, height)
        if video.codec not in EXACT:
            return f"it is {video.codec}, and hardware gives the same samples only for {', '.join(EXACT.values())}"
        refusal = None if self.gpu is None else self.gpu.refuses(video)
        if refusal is not None:
            return refusal
        if pixels.chroma == "420" and pixels.bits in FORMATS and pixels.via is None and not pixels.rgb:
            return None
        return f"its frames are {name}; it only decodes 4:2:0 of {' and '.join(map(str, FORMATS))} bits"

    def has_size(self, frame: Any, width: int, height: int) -> bool:
        """Return whether its frame contains a picture of that size. Surfaces of VP9 are rounded up to even sizes."""
        return frame.width - width in (0, width % 2) and frame.height - height in (0, height % 2)

    def name(self, codec: str) -> str:
        """Return its name in reports if it decodes a codec."""
        return f"{codec} ({self.kind})"

    def decodes(self, facts: ClipFacts) -> bool:
        """Return whether it decodes the clip with these facts."""
        return facts.codec is not None and (facts.decoder or "").endswith(self.name(""))

    def note_compared(self, clip: Hashable, how: Any) -> None:
        """Note a clip or a kind for `compared`."""
        if len(self.compared) >= _MAX_COMPARED:
            self.compared.clear()
        self.compared[clip] = how

    def request(self) -> Any:
        """Return the argument `hwaccel` of `av.open`."""
        from av.codec.hwaccel import HWAccel

        # One context serves all sessions of the process.
        options: dict[str, object] = {"primary_ctx": "1"} if self.kind == "cuda" else {}
        device, stays = None if self.gpu is None else self.gpu.device, self.surfaces is not None
        return HWAccel(self.kind, device=device, allow_software_fallback=False, options=options, is_hw_owned=stays)

    def own_codec(self, codec: Any) -> str | None:
        """Return FFmpeg's codec to open by name if the default codec of a container does not support hardware.

        FFmpeg opens AV1 with libdav1d. Its own decoder of AV1 decodes only on hardware.
        """
        return None if codec.name == codec.canonical_name else str(codec.canonical_name)

    def open_codec(self, name: str, stream: Any) -> Any:
        """Return a codec context of that name for a stream, which decodes by hardware. Raises as `av.open` does."""
        from av.codec import CodecContext

        context = CodecContext.create(name, "r", hwaccel=self.request())
        context.extradata = stream.codec_context.extradata
        return context


def check_decode(decode: str) -> None:
    """Raise OptionError for an unknown decoder, and for one that the installed FFmpeg lacks."""
    DECODE.check(decode)
    if decode not in ("auto", "cpu") and decode not in offered():
        raise OptionError(
            f"`decode={decode}` is not possible: the FFmpeg of the installed PyAV was built with"
            f" {', '.join(sorted(offered())) or 'no hardware decoder'}. `decode=cpu` decodes on the CPU"
        )


@cache
def offered() -> frozenset[str]:
    """Return the kinds that the installed FFmpeg was built with. Only opening one shows whether there is a device for it."""
    try:
        from av.codec.hwaccel import hwdevices_available
    except ImportError:
        return frozenset()
    return frozenset(hwdevices_available())
