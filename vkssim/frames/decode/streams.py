"""Choose which of a container's video streams is scored."""

from __future__ import annotations

from typing import Any

from ...errors import InputError


def choose_stream(path: str, container: Any, number: int | None) -> tuple[Any, tuple[str, ...]]:
    """Return the video stream to score, and what the report notes of the choice.

    `number` is the index of the stream in the file, as ffprobe shows it. Where it is None the first stream with the default
    mark is taken, else the first; cover pictures never. Raises InputError where there is no such stream, or only tiles of a
    picture.
    """
    streams = list(container.streams.video)
    if not streams:
        raise InputError(f"{path} has no video stream")
    if number is not None:
        named = next((stream for stream in streams if stream.index == number), None)
        if named is None:
            raise InputError(f"{path} has no video stream {number}; it has {_listed(streams)}")
        return named, _notes(named, streams)
    pictures = [stream for stream in streams if not is_cover(stream)]
    if not pictures:
        raise InputError(f"{path} has no video stream, only cover pictures; it has {_listed(streams)}")
    whole = [stream for stream in pictures if not _has(stream, "dependent")]
    default = next((stream for stream in whole if _has(stream, "default")), None)
    if default is None and len(whole) < len(pictures) and (not whole or "mov" in container.format.name):
        raise InputError(
            f"{path} is a picture of {len(pictures) - len(whole)} tiles, which are not put together here; it has"
            f" {_listed(streams)}. Convert it, for instance with `heif-dec IN OUT.png` or `avifdec IN OUT.png`"
        )
    chosen = default or whole[0]
    return chosen, _notes(chosen, streams)


def is_cover(stream: Any) -> bool:
    """Return whether a stream is a cover picture, which FFmpeg makes of an attachment or of a tag."""
    return _has(stream, "attached_pic")


def _notes(chosen: Any, streams: list[Any]) -> tuple[str, ...]:
    if len(streams) == 1:
        return ()
    return (f"stream {chosen.index} was taken of {_listed(streams)}",)


def _listed(streams: list[Any]) -> str:
    return ", ".join(f"{stream.index} ({_described(stream)})" for stream in streams)


def _described(stream: Any) -> str:
    codec = stream.codec_context
    marks = [mark.replace("_", " ") for mark in ("default", "attached_pic", "dependent") if _has(stream, mark)]
    size = [] if codec is None else [f"{codec.name} {codec.width}x{codec.height}"]
    return ", ".join(size + marks) or "unknown"


def _has(stream: Any, mark: str) -> bool:
    from av.stream import Disposition

    return bool(stream.disposition & Disposition[mark])
