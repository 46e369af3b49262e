"""Open the clip that a path names. The first bytes of the file choose its source, not the ending of its name."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from typing import BinaryIO, cast

from ..errors import DecoderBusyError, InputError, VkssimError
from ..storage import urls
from ..storage.containers import BOXES
from ..storage.inputs import Opened, sequence
from ..storage.location import is_url, redact_url, unsupported_url
from ..utils.interruption import result_of
from ..utils.limits import abbreviated
from ..utils.thread_pool import close_at_end, closing_on_error, run_in_thread
from . import y4m
from .decode.hardware import HardwareDecoder
from .options import RawDescription
from .raw import RAW, PlanarLayout, PlanarStream, RawFile, RawUrl, interruptible, open_stream
from .source import FrameSource, ProcessedSource

_TRANSPORT_PACKET, _TRANSPORT_HEADER = 188, 4
_PEEK = 2 * _TRANSPORT_PACKET + _TRANSPORT_HEADER

_CONTAINER_STARTS = (
    b"\x1a\x45\xdf\xa3",  # Matroska, WebM
    b"RIFF",  # AVI
    b"FLV\x01",
    b"DKIF",  # IVF
    b"OggS",
    *(b"\x00\x00\x00\x01" + start for start in (b"\x67", b"\x27", b"\x47", b"\x09")),  # H.264: SPS or delimiter
    *(b"\x00\x00\x00\x01" + start for start in (b"\x40\x01", b"\x46\x01")),  # HEVC: VPS or delimiter
    b"\x12\x00\x0a",  # AV1: temporal delimiter, sequence header
    b"nut/multimedia container",
    b"\x00\x00\x01\xb0",  # MPEG-4 elementary stream
    b"\x00\x00\x01\xba",  # MPEG program stream
    b"\x00\x00\x01\xb3",  # MPEG-1/2 elementary stream
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",  # JPEG
    b"II*\x00",  # TIFF
    b"MM\x00*",
    b"GIF8",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",  # ASF, WMV
    b"\x06\x0e\x2b\x34\x02\x05\x01\x01",  # MXF
    *(b"SDPX", b"XPDS"),  # DPX, in both orders of bytes
    *(b"\x80\x2a\x5f\xd7", b"\xd7\x5f\x2a\x80"),  # Cineon
    b"\x76\x2f\x31\x01",  # OpenEXR
    *(b"\x00\x00\x00\x0c" + name + b"\r\n\x87\n" for name in (b"jP  ", b"JXL ")),  # JPEG 2000, JPEG XL
    b"\xff\x4f\xff\x51",  # JPEG 2000 without a container
    *(b"qoif", b"#?RADIANCE", b"8BPS"),  # QOI, Radiance, Photoshop
)

_TEXT_STARTS = re.compile(rb"P[1-6]\s+(?:#[^\n]*\n\s*)*\d+\s+\d+\s|P7\nWIDTH ")
"""The headers of PBM, PGM, PPM and PAM."""


def open_both(
    stack: ExitStack, openings: Sequence[Callable[[], FrameSource]], hardware: HardwareDecoder | None
) -> tuple[FrameSource, FrameSource]:
    """Open two files, which the stack closes. They are opened in parallel for `hardware`, which takes 0.1 s or more to start.

    Raises the error of the first file if both have one.
    """
    first, second = openings
    if hardware is None:
        return close_at_end(stack, first()), close_at_end(stack, second())
    opening = run_in_thread("vkssim-open", second)
    try:
        return close_at_end(stack, first()), close_at_end(stack, result_of(opening))
    except DecoderBusyError:
        with suppress(VkssimError):
            result_of(opening).close()  # at once, because another worker may need the decoder of the second file
        raise
    except BaseException:
        opening.add_done_callback(_close_opened)
        raise


def _close_opened(opening: Future[FrameSource]) -> None:
    """Close a file that is no longer needed, as soon as it is open."""
    if opening.exception() is None:
        opening.result().close()


def planar_layout(raw: RawDescription, path: str) -> PlanarLayout:
    """Return the layout of a raw file. Raises InputError if a value of its description is missing or not possible."""
    values = {name: getattr(raw, name) for name in ("width", "height", "pixel_format", "bits")}
    missing = [f"`{name}`" for name, value in values.items() if value is None]
    if missing:
        raise InputError(
            f"{path} is neither Y4M nor a known container, so it is read as raw YUV, which needs {', '.join(missing)} as well"
        )
    return PlanarLayout(**values)


def may_be_container(path: str, raw: RawDescription) -> bool:
    """Return False for a local file that is certainly raw YUV or Y4M, and True for everything else."""
    try:
        with open(path, "rb") as file:
            head = file.read(_PEEK)
    except (OSError, ValueError):  # a URL, a pattern, or a file that cannot be opened
        return True
    return not head.startswith(y4m.MAGIC) and (is_container(head) or raw.is_empty)


def may_be_containers(paths: Sequence[str], raw: RawDescription) -> bool:
    """Return whether hardware may decode clips: files that can be reopened, none of which is certainly raw YUV or Y4M."""
    return can_reopen(*paths) and all(may_be_container(path, raw) for path in paths)


def can_reopen(*paths: str) -> bool:
    """Return whether all paths can be reopened: files, also by URL, and patterns of files can, but pipes cannot."""
    return all(path != "-" and (os.path.isfile(path) or not os.path.exists(path)) for path in paths)


def check_reopens(*paths: str) -> None:
    """Raise InputError for a path that can be read only once."""
    for path in paths:
        if not can_reopen(path):
            raise InputError(
                f"{path} is not a regular file; a batch reads no pipes, because it could wait for a writer forever"
            )


def oriented(source: FrameSource) -> FrameSource:
    """Return the source with its visible pictures, in the orientation in which players show them."""
    orientation = source.orientation
    if source.aperture is not None:
        source = ProcessedSource(source, source.aperture)
    return source if orientation is None else ProcessedSource(source, orientation)


def open_file(
    path: str,
    raw: RawDescription,
    stream: int | None = None,
    hardware: HardwareDecoder | None = None,
    *,
    adds_grain: bool = True,
) -> FrameSource:
    """Open a file, or standard input for ``-``, as raw YUV, Y4M or a container, without turning its pictures.

    `stream` is the index of the stream of a container. A container is decoded by `hardware` if possible; `HardwareDecoder` says
    what happens to other clips. If not `adds_grain`, AV1 is decoded without the film grain that its decoder synthesises. Raises
    InputError if the file cannot be opened, is empty, or is not a video.
    """
    opened = None if path == "-" else Opened.now(path)
    open_container = partial(_open_container, number=stream, hardware=hardware, opened=opened, adds_grain=adds_grain)
    source = _open_file(path, raw, open_container)
    source.opened = opened
    if stream and source.stream is None:
        source.close()
        raise InputError(f"{source.info.path} is {source.info.kind} and has no stream {stream}; only containers have several")
    return source


def _open_file(path: str, raw: RawDescription, open_container: Callable[[str, bytes | None], FrameSource]) -> FrameSource:
    """Open a file; `open_container` takes its first bytes, or None for a sequence of pictures."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; pipe the clip into it, or give the name of a file")
        return _open_stream("standard input", interruptible(sys.stdin.buffer), raw)
    if is_url(path):
        path = redact_url(path)
        try:
            size = urls.size(path)
            head = urls.read(path, 0, min(size, _PEEK))
            if head.startswith(y4m.MAGIC):
                return y4m.Y4mStream(path, urls.open_url(path))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from None
        if is_container(_not_empty(path, head)) or raw.is_empty:
            return open_container(path, head)
        return RawUrl(path, planar_layout(raw, path), size, allow_partial=raw.allow_partial)
    if (refusal := unsupported_url(path)) is not None and not os.path.exists(path):
        raise InputError(refusal)
    if sequence(path) is not None:
        return open_container(path, None)
    try:
        stream = open_stream(path)
        head = stream.peek(_PEEK)[:_PEEK]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # the name has a zero byte, or cannot be encoded
        raise InputError(f"{abbreviated(path)} names no file: {error}") from None
    with closing_on_error(stream):
        if not stream.seekable():
            return _open_stream(path, stream, raw)
        if head.startswith(y4m.MAGIC):
            return y4m.Y4mStream(path, stream)
    stream.close()
    if is_container(_not_empty(path, head)) or raw.is_empty:
        return open_container(path, head)
    return RawFile(path, planar_layout(raw, path), allow_partial=raw.allow_partial)


def _not_empty(path: str, head: bytes) -> bytes:
    """Return the first bytes of a file. Raises InputError if there are none."""
    if not head:
        raise InputError(f"{path} is empty")
    return head


def _open_container(
    path: str, head: bytes | None, number: int | None, hardware: HardwareDecoder | None, opened: Opened | None, adds_grain: bool
) -> FrameSource:
    from .decode.clip_decoder import UnknownFormatError  # here, because only containers need PyAV
    from .decode.container import ContainerFile

    try:
        return ContainerFile(path, number, hardware, opened, adds_grain=adds_grain)
    except UnknownFormatError:
        if head is None or is_container(head):
            raise
        # Samples may look like letters, but hardly with line feeds between them and without any other byte.
        if b"\n" in head and all(0x20 <= byte < 0x7F or byte in b"\t\r\n" for byte in head):
            raise InputError(
                f"{path} is a text, not a video; lists of other files, such as HLS, DASH, SDP and concat, are not read. Give"
                " the file itself"
            ) from None
        raise UnknownFormatError(
            f"{path} is neither Y4M nor a container that FFmpeg reads; if it is raw YUV, give `width`, `height`,"
            " `pixel_format` and `bits`"
        ) from None


def is_container(head: bytes) -> bool:
    """Return whether a file with these first bytes is a container or a picture. Read as samples, it would be garbage.

    BMP and TGA are not among these pictures, because few of their bytes are the same in every file.
    """
    return (
        head.startswith(_CONTAINER_STARTS)
        or _TEXT_STARTS.match(head) is not None
        or head[4:8] in BOXES
        or (len(head) == _PEEK and all(_begins_packet(head[start:]) for start in range(0, _PEEK, _TRANSPORT_PACKET)))
    )


def _begins_packet(data: bytes) -> bool:
    """Return True for the header of a packet of an MPEG transport stream: ISO/IEC 13818-1, 2.4.3.2.

    The sync byte alone, 0x47, may be a grey sample of raw video, but then the next bytes are most likely no valid header.
    """
    error_indicated, without_content = data[1] & 0x80, not data[3] & 0x30
    return data[0] == 0x47 and not error_indicated and not without_content


def _open_stream(path: str, stream: BinaryIO, raw: RawDescription) -> FrameSource:
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, stream))
    head = _not_empty(path, buffered.peek(_PEEK)[:_PEEK])
    if head.startswith(y4m.MAGIC):
        return y4m.Y4mStream(path, buffered)
    if is_container(head):
        raise InputError(f"{path} is a container; only raw YUV and Y4M can be read from a pipe. Give the file itself")
    layout = planar_layout(raw, path)
    return PlanarStream(buffered, layout.info(path, RAW), layout)
