"""The bit rate of a container, for ladders whose manifest does not give it."""

from __future__ import annotations

from ..frames.demuxer import open_container


def measured_kbps(path: str) -> float | None:
    """kbit/s of the first video stream, or of the whole file where the container does not tell them apart.

    None for what is no container with a known duration, such as raw video; Y4M counts as that too.
    """
    import av

    try:
        with open_container(path) as container:
            stream = container.streams.video[0]
            if stream.codec_context is None or stream.codec_context.name in ("rawvideo", "wrapped_avframe"):
                return None
            rate = stream.bit_rate or container.bit_rate
    except (av.FFmpegError, OSError, IndexError, ValueError):
        return None
    return float(rate) / 1000 if rate else None
