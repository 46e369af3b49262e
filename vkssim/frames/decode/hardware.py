"""Hardware decoders: how FFmpeg opens one, and which clips it decodes, until the first sign of damage (docs/adr/0010)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ...errors import DecoderBusyError, DeviceError, InputError, OptionError
from ...storage.containers import choose_stream
from ...storage.inputs import Opened
from ...utils.choices import DECODE
from ...utils.interruption import result_of
from ...utils.thread_pool import run_in_thread
from ..info import ClipFacts
from ..picture.colour import stated_colours
from ..picture.pixels import PixelFormat, SurfaceCopy, format_name, pixel_format
from .decoder import AT_FIRST_KEY, Begin, UndecodableError, reason

if TYPE_CHECKING:
    from .clip_decoder import ClipDecoder
    from .description import ClipDescription

FORMATS = {8: "nv12", 10: "p010le"}
"""The pixel formats of 4:2:0 frames copied from a decoder's surface, by their depth in bits."""

EXACT = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
"""The codecs whose standards define every bit of a frame, by FFmpeg's names. Other standards leave a rounding open."""

UNCOMPRESSED = ("rawvideo", "wrapped_avframe")
"""The codecs whose packets are the frames themselves, by FFmpeg's names."""

_MAX_COMPARED = 256  # clips: workers open the same ones at about the same time

START_TIMEOUT_S = 1.0
"""The longest wait for a decoder that is being started, many times as long as usual."""

_opening, _starting = threading.Lock(), threading.Lock()

ClipKey = tuple[Opened, int | None]
"""A file as it was opened, and the index of the stream that the caller named."""


@dataclass(frozen=True)
class CodedVideo:
    """A stream as a driver sees it: its codec by FFmpeg's name, and its coded frames before cropping."""

    codec: str
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


@dataclass(frozen=True)
class HardwareDecoder:
    """A hardware decoder. `kind` is FFmpeg's name of its API, and `gpu` is the driver of the GPU, None for the first one.

    A decoder that is not `required` leaves clips that it cannot decode to the CPU. A `shared` decoder already decodes on
    another thread, so DecoderBusyError is raised if it cannot be opened again. `compared` has clips whose first frame it has
    decoded to the CPU's samples, each with its description and the place where decoding begins.
    """

    kind: str
    gpu: Driver | None = None
    required: bool = True
    shared: bool = False
    compared: dict[ClipKey, tuple[ClipDescription, Begin]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """Return the method to copy frames, as `Driver.surfaces`."""
        return None if self.gpu is None else self.gpu.surfaces

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

    def note_compared(self, clip: ClipKey, facts: ClipDescription, begin: Begin) -> None:
        """Note a clip for `compared`."""
        if len(self.compared) >= _MAX_COMPARED:
            self.compared.clear()
        self.compared[clip] = facts, begin

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


def if_offered(hardware: HardwareDecoder | None) -> HardwareDecoder | None:
    """Return the decoder, but None for a preferred one that FFmpeg lacks. This imports PyAV, so only containers call it."""
    return hardware if hardware is not None and (hardware.required or hardware.kind in offered()) else None


# -- start ------------------------------------------------------------------------------------------------------------


def start_early(clip: ClipDecoder, hardware: HardwareDecoder) -> Future[Any]:
    """Decode the first frame of a clip by hardware, on a thread, while the CPU decodes its own: both take 0.1 s.

    The result is for `start_by_hardware`. It is None if hardware refused the clip, or failed.
    """
    return run_in_thread("vkssim-hardware", partial(_start_early, clip, hardware))


def _start_early(clip: ClipDecoder, hardware: HardwareDecoder) -> Any:
    from av import FFmpegError

    with suppress(FFmpegError, OSError, ValueError, RuntimeError, UndecodableError, InputError, DeviceError):
        with clip.open() as container:
            codec = choose_stream(clip.path, container, clip.index).codec_context
            clip.codec = codec.codec
            # The container is usually right. The frames decide.
            pixels = pixel_format(clip.path, codec.pix_fmt)
            if hardware.refuses(codec, pixels, (codec.width, codec.height), codec.pix_fmt) is not None:
                return None
        with _turn(_opening):  # while the decoder of the other clip is being started
            clip.start(threads=False, begin=AT_FIRST_KEY, hardware=hardware)
        with _turn(_starting):
            return clip.decoder.next()
    return None


def _start(clip: ClipDecoder, hardware: HardwareDecoder, begin: Begin) -> Any:
    with _turn(_starting):
        clip.start(threads=False, begin=begin, hardware=hardware)
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

    `first` is the CPU's first frame, to which `facts` belong; None if they are from an earlier comparison. `early` is the
    start that `start_early` made, which is not used if decoding has to begin elsewhere. Raises DecoderBusyError.
    """
    import av  # here, because its import takes time and only containers need it

    frame = None if early is None else result_of(early)
    clip.codec = facts.codec
    try:
        if frame is None or begin != AT_FIRST_KEY:
            frame = _start(clip, hardware, begin)
        return frame, _difference(clip, facts, first, frame, hardware)
    except RuntimeError:  # of PyAV, for a codec without such a decoder
        return None, f"FFmpeg has none for {facts.codec.canonical_name}"
    except (av.FFmpegError, OSError, ValueError, UndecodableError, InputError, DeviceError) as error:
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
    if frame is None or clip.decoder.doubtful:
        return "it returns no frame, or sees damage in the first one"
    expected, name = FORMATS[facts.pixels.bits], format_name(frame)
    time = frame.pts if first is None else first.pts
    if (name, frame.pts) != (expected, time) or not hardware.has_size(frame, *facts.size):
        return f"its first frame is {frame.width}x{frame.height} {name} at {frame.pts}"
    if first is None:
        return None
    planes, others = facts.info.new_planes(), facts.info.new_planes()
    facts.pixels.copy(first, planes)
    pixel_format(clip.path, expected).copy(frame, others, hardware.surfaces)
    alike = all(np.array_equal(plane, other) for plane, other in zip(planes, others, strict=True))
    return None if alike and stated_colours(frame) == stated_colours(first) else "its first frame has other samples"
