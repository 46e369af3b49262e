"""Hardware decoders: how FFmpeg is asked for one, and which clips it is given.

A hardware decoder gives the samples that the processor gives, bit for bit: the standards of H.264, HEVC, VP9 and AV1 leave
nothing open. It says less of damage, though. So it reads a clip only as long as FFmpeg sees nothing wrong. From the first sign
of damage on, the processor decodes the clip again (docs/adr/0010). A clip that a required decoder cannot decode is an error; a
decoder that is only preferred leaves such a clip to the processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from ...errors import OptionError
from ...utils.choices import DECODERS
from ..info import ClipFacts
from ..picture.pixels import PixelFormat
from ..picture.surfaces import SurfaceCopy

FORMATS = {8: "nv12", 10: "p010le"}
"""The pixel formats that frames of 4:2:0 have when they were copied from a decoder's surface, by their depth in bits."""

EXACT = {"h264": "H.264", "hevc": "HEVC", "vp8": "VP8", "vp9": "VP9", "av1": "AV1"}
"""The codecs whose standards define every bit of a frame, by FFmpeg's names. Others leave the rounding of a transform open."""

UNCOMPRESSED = ("rawvideo", "wrapped_avframe")
"""The codecs whose packets are the frames themselves, by FFmpeg's names."""


@dataclass(frozen=True)
class CodedVideo:
    """Describe a stream to a driver: its codec by FFmpeg's name, and its frames as they are coded, before cropping."""

    codec: str
    chroma: str
    bits: int
    width: int
    height: int


class Driver(Protocol):
    """Know what the decoder of one GPU can do, before it is opened."""

    @property
    def device(self) -> str | None:
        """Return FFmpeg's name of the GPU; None where the driver does not know it, so that FFmpeg takes the first one."""

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """Return what copies frames, which then stay in the memory of the GPU; None where FFmpeg copies them to the host."""

    def refuses(self, video: CodedVideo) -> str | None:
        """Return why the GPU cannot decode a stream; None where it can, or where that is not known."""


@dataclass(frozen=True)
class HardwareDecoder:
    """A decoder of FFmpeg's: `kind` is the name of its API, and `gpu` the GPU: FFmpeg's name of it, or its driver.

    `gpu` is None for the first GPU. A decoder that is not `demanded` leaves clips that it cannot decode to the processor. One
    that is `shared` decodes on another thread already. So where it cannot be opened once more, DecoderBusyError is raised.
    """

    kind: str
    gpu: str | Driver | None = None
    demanded: bool = True
    shared: bool = False

    @property
    def device(self) -> str | None:
        """Return FFmpeg's name of the GPU, None for the first one. A driver is only asked for it when it is needed."""
        return self.gpu if self.gpu is None or isinstance(self.gpu, str) else self.gpu.device

    @property
    def surfaces(self) -> SurfaceCopy | None:
        """Return what copies frames, which then stay in the memory of the GPU; None where FFmpeg copies them to the host."""
        return None if self._driver is None else self._driver.surfaces

    @property
    def _driver(self) -> Driver | None:
        return None if isinstance(self.gpu, str) else self.gpu

    @property
    def is_offered(self) -> bool:
        """Return whether FFmpeg was built with it here."""
        return self.kind in offered()

    def passes_over(self, codec: str, *, moving: bool) -> bool:
        """Return whether a clip is nothing to decode by hardware: a picture, or uncompressed frames, which are only copied."""
        return not self.demanded and (not moving or codec in UNCOMPRESSED)

    def refuses(self, video: CodedVideo, pixels: PixelFormat, name: str) -> str | None:
        """Return why a stream, whose frames have the pixel format of that name, is not left to it; None where it is."""
        if video.codec not in EXACT:
            return f"it is {video.codec}, and hardware gives the same samples only for {', '.join(EXACT.values())}"
        refusal = None if self._driver is None else self._driver.refuses(video)
        if refusal is not None:
            return refusal
        if pixels.chroma == "420" and pixels.bits in FORMATS and pixels.via is None and not pixels.rgb:
            return None
        return f"its frames are {name}; 4:2:0 of {' and '.join(map(str, FORMATS))} bits is what it decodes here"

    def has_size(self, frame: Any, width: int, height: int) -> bool:
        """Return whether a frame of it holds a picture of that size: surfaces of VP9 are rounded up to even sizes."""
        return frame.width - width in (0, width % 2) and frame.height - height in (0, height % 2)

    def name(self, codec: str) -> str:
        """Return what reports call it where it decodes a codec."""
        return f"{codec} ({self.kind})"

    def decodes(self, facts: ClipFacts) -> bool:
        """Return whether it decodes a clip, by what is known of that."""
        return facts.codec is not None and (facts.decoder or "").endswith(self.name(""))

    def request(self) -> Any:
        """Return what `av.open` is given."""
        from av.codec.hwaccel import HWAccel

        # One context serves all sessions of the process.
        options: dict[str, object] = {"primary_ctx": "1"} if self.kind == "cuda" else {}
        stays = self.surfaces is not None
        return HWAccel(self.kind, device=self.device, allow_software_fallback=False, options=options, is_hw_owned=stays)

    def own_codec(self, codec: Any) -> str | None:
        """Return which codec of FFmpeg's to open by name, where the one that a container is opened with has no hardware.

        FFmpeg opens AV1 with libdav1d. Its own decoder of AV1 decodes on hardware alone.
        """
        return None if codec.name == codec.canonical_name else str(codec.canonical_name)

    def open_codec(self, name: str, stream: Any) -> Any:
        """Return a codec context of that name for a stream, which decodes by hardware. Raises as `av.open` with `request`."""
        from av.codec import CodecContext

        context = CodecContext.create(name, "r", hwaccel=self.request())
        context.extradata = stream.codec_context.extradata
        return context


def check_decode(decode: str) -> None:
    """Raise OptionError for a decoder that there is not, or that FFmpeg lacks here."""
    if decode not in DECODERS:
        raise OptionError(f"decode is {decode!r}; {', '.join(DECODERS)} are possible")
    if decode not in ("auto", "cpu") and decode not in offered():
        raise OptionError(
            f"`decode={decode}` is not possible: the FFmpeg of the installed PyAV was built with"
            f" {', '.join(sorted(offered())) or 'no hardware decoder'}. `decode=cpu` decodes on the processor"
        )


@cache
def offered() -> frozenset[str]:
    """Return the kinds that FFmpeg was built with here. Whether there is a device for one of them only opening it tells."""
    try:
        from av.codec.hwaccel import hwdevices_available
    except ImportError:
        return frozenset()
    return frozenset(hwdevices_available())
