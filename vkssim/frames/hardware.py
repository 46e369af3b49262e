"""Hardware decoders: how FFmpeg is asked for one, and what it decodes.

A hardware decoder gives the samples that the processor gives, bit for bit: the standards of H.264, HEVC, VP9 and AV1 leave
nothing open. It says less of damage, though. So it reads a clip only as long as FFmpeg sees nothing wrong. From the first sign
of damage on, the processor decodes the clip again (docs/adr/0032).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..errors import OptionError
from ..utils.choices import DECODERS
from .clip_facts import ClipFacts
from .pixels import PixelFormat
from .surfaces import SurfaceCopy

FORMATS = {8: "nv12", 10: "p010le"}
"""The pixel formats that frames of 4:2:0 have when they were copied from a decoder's surface, by their depth in bits."""


@dataclass(frozen=True)
class HardwareDecoder:
    """A decoder of FFmpeg's: `kind` is the name of its API, and `device` its name for the device, None for the first one."""

    kind: str
    device: str | None = None
    surfaces: SurfaceCopy | None = field(default=None, compare=False)
    """What copies frames, which then stay in the memory of the GPU; None where FFmpeg copies them to the host."""

    def refuses(self, pixels: PixelFormat, name: str) -> str | None:
        """Return why frames of a pixel format are not left to hardware; None where they are."""
        if pixels.chroma == "420" and pixels.bits in FORMATS and pixels.via is None and not pixels.rgb:
            return None
        return f"its frames are {name}; 4:2:0 of {' and '.join(map(str, FORMATS))} bits is what it decodes here"

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


def check_decode(decode: str) -> None:
    """Raise OptionError for a decoder that there is not, or that FFmpeg lacks here."""
    if decode not in DECODERS:
        raise OptionError(f"decode is {decode!r}; {', '.join(DECODERS)} are possible")
    if decode != "cpu" and decode not in offered():
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
