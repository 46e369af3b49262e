"""Tiny clips with a cut, in detail enough that settings differ; encoders at their quickest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim.cli.encoding import encoder_spec
from vkssim.search import search_run
from vkssim.search.encode import encoded_pairs

from ..support.children import in_child

WIDTH, HEIGHT, FRAMES, CUT = 64, 48, 24, 12
"""The clip that most searches have: two shots, as short as shots can be."""
LONG = 256
"""Frames of a clip of which samples are encoded."""
QUICK = {
    "libx264": "preset=ultrafast",
    "libx265": "preset=ultrafast:pools=none:frame-threads=1",  # see tests/frames/encoding.py
    "libsvtav1": "preset=12",
}
SCALED: dict[str, Any] = {"features": "float_ssim=scale=1"}
WORDS = ("--encoder", "libx264", "--enc", QUICK["libx264"], "--feature", SCALED["features"])
"""The quickest search by the command line; ASKED is the same from Python."""
ASKED: dict[str, Any] = {"encoder": "libx264", "options": QUICK["libx264"], **SCALED}


def arguments(**asked: Any) -> dict[str, Any]:
    """Return the arguments of a search, with those of the encoder as one specification."""
    return {"encoder": encoder_spec(asked), **asked}


def pictures(count: int = FRAMES, bits: int = 8, shots: int = 2, seed: int = 3) -> list[np.ndarray]:
    """Luma of (48, 64): a texture that moves, and a new texture after each cut."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(count):
        if number % CUT == 0 and number < shots * CUT:
            coarse = rng.integers(0, 215, (4, 5)).repeat(16, 0).repeat(16, 1)
            texture = coarse + rng.integers(0, 40, coarse.shape)
        shift = number % CUT
        made.append((texture[shift : shift + HEIGHT, shift : shift + WIDTH] * 2 ** (bits - 8)).astype(np.uint16))
    return made


@in_child
def source(
    path: Path,
    *,
    bits: int = 8,
    sound: str | None = None,
    rotation: int | None = None,
    colours: tuple[int, int, int, int] = (1, 1, 1, 1),
    **more: Any,
) -> str:
    """Write a lossless clip, 25 frames a second; with a tone in the codec `sound`, if it is given."""
    layout = "yuv420p" if bits == 8 else f"yuv420p{bits}le"
    rate = Fraction(25)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(more.pop("codec", "ffv1"), rate=rate, options=more.pop("options", {}))
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, layout
        if rotation is not None:
            stream.set_display_rotation(rotation)
        context = stream.codec_context
        context.color_primaries, context.color_trc, context.colorspace, context.color_range = colours
        audio: Any = None if sound is None else container.add_stream(sound, rate=8000, layout="mono")
        for number, luma in enumerate(pictures(more.get("count", FRAMES), bits, more.get("shots", 2))):
            planes = np.concatenate([luma, np.full((HEIGHT // 2, WIDTH), 2 ** (bits - 1), np.uint16)])
            samples: Any = planes.astype(np.uint8 if bits == 8 else np.uint16)
            frame = av.VideoFrame.from_ndarray(samples, format=layout)
            frame.pts, frame.time_base = number, 1 / rate
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if audio is not None:
            sound_wave = (np.sin(np.arange(10240) / 20) * 8000).astype(np.int16)[None]
            tone = av.AudioFrame.from_ndarray(sound_wave, format="s16", layout="mono")
            tone.sample_rate, tone.pts = 8000, 0
            container.mux(audio.encode(tone))
            container.mux(audio.encode(None))
    return str(path)


def break_settings(monkeypatch: pytest.MonkeyPatch, is_broken: Callable[..., bool]) -> None:
    """Give the streams of some settings to a decoder of another codec. `is_broken` gets the setting and the output."""

    def pairs(frames: Any, sample: Any, recipe: Any, place: int, stream: Any, output: Any, **more: Any) -> Any:
        if is_broken(recipe.parameter.values[place], output):
            recipe = replace(recipe, encoder=replace(recipe.encoder, decoder="vp9"))
        return encoded_pairs(frames, sample, recipe, place, stream, output, **more)

    monkeypatch.setattr(search_run, "encoded_pairs", pairs)


def damage_settings(monkeypatch: pytest.MonkeyPatch, is_damaged: Callable[[float], bool]) -> None:
    """Make decoders give the wrong pictures for the streams of some settings, and no error. `is_damaged` gets the setting."""

    def pairs(frames: Any, sample: Any, recipe: Any, place: int, *more: Any, **planes: Any) -> Any:
        for before, after in encoded_pairs(frames, sample, recipe, place, *more, **planes):
            yield before, (np.asarray(after)[::-1, ::-1].copy() if is_damaged(recipe.parameter.values[place]) else after)

    monkeypatch.setattr(search_run, "encoded_pairs", pairs)


def remuxed(
    clip: str, path: Path, *, subtitles: Sequence[str] = (), font: bool = False, times: Sequence[int] = (), twice: bool = False
) -> str:
    """Copy a clip, with subtitles in each of these codecs, an attachment, other times, or its video as two streams."""
    with av.open(clip) as read, av.open(str(path), "w") as written:
        streams: list[Any] = [written.add_stream_from_template(read.streams.video[0]) for _ in range(1 + twice)]
        texts: list[Any] = [written.add_mux_stream(codec) for codec in subtitles]
        if font:
            written.add_attachment("font.ttf", "font/ttf", b"no font at all")
        packets = [packet for packet in read.demux(video=0) if packet.size]
        for number, packet in enumerate(packets):
            time = times[number] if times else packet.pts
            for stream in streams:
                copy = av.Packet(bytes(packet))
                copy.pts = copy.dts = time
                copy.time_base, copy.stream, copy.is_keyframe = packet.time_base, stream, packet.is_keyframe
                written.mux(copy)
        for stream, codec in zip(texts, subtitles, strict=True):
            text = av.Packet(b"\0\5Hello" if codec == "mov_text" else b"Hello")
            text.pts = text.dts = 0
            text.duration, text.time_base, text.stream = 500, Fraction(1, 1000), stream
            written.mux(text)
    return str(path)
