"""The streams of a clip beside its video, and the words of FFmpeg's command line for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_TEXTS = frozenset(("ass", "eia_608", "mov_text", "ssa", "subrip", "text", "webvtt"))
"""The codecs of subtitles that are text, which FFmpeg makes text of another codec of; bitmaps it does not."""

_PICTURES = frozenset(("arib_caption", "dvb_subtitle", "dvd_subtitle", "hdmv_pgs_subtitle", "hdmv_text_subtitle"))

_COPIED = frozenset(("ass", "ssa", "subrip", "text", "webvtt")) | _PICTURES
"""The codecs of subtitles that FFmpeg copies into Matroska."""


@dataclass(frozen=True)
class OtherStreams:
    """The streams of a clip beside its video. `subtitles` are FFmpeg's names of their codecs, "" for an unknown one."""

    subtitles: tuple[str, ...] = ()
    attachments: bool = False


def other_streams(container: Any) -> OtherStreams:
    """Return the streams of an opened clip beside its video."""
    return OtherStreams(
        tuple(
            "" if one.codec_context is None else one.codec_context.codec.canonical_name for one in container.streams.subtitles
        ),
        attachments=bool(container.streams.attachments),
    )


def copying_words(others: OtherStreams) -> list[str]:
    """Return the words of a command line that copy sound, subtitles and attachments into Matroska.

    Subtitles that Matroska cannot hold become SRT. Codecs that are unknown to FFmpeg are left out, because it would write
    nothing at all.
    """
    maps, codecs = ["-map", "0:a?"], ["-c:a", "copy"]
    named = {number: _codec(name) for number, name in enumerate(others.subtitles)}
    kept = {number: codec for number, codec in named.items() if codec is not None}
    if kept == named:
        maps += ["-map", "0:s?"]
    else:
        maps += [word for number in kept for word in ("-map", f"0:s:{number}")]
    if len(set(kept.values())) > 1:
        codecs += [word for place, codec in enumerate(kept.values()) for word in (f"-c:s:{place}", codec)]
    elif kept or not named:
        codecs += ["-c:s", next(iter(kept.values()), "copy")]
    if others.attachments:
        maps += ["-map", "0:t?"]  # fonts of subtitles
    return [*maps, *codecs]


def _codec(name: str) -> str | None:
    """Return the codec that FFmpeg gives subtitles in Matroska; None if they cannot be in it."""
    if name in _COPIED:
        return "copy"
    return "srt" if name in _TEXTS else None
