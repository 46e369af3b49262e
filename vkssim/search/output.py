"""Write the encode of a clip to a file: its video with the setting that was chosen, its sound and subtitles copied."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..errors import OutputError
from ..storage.atomic import check_writable
from ..storage.containers import local_name, open_clip
from ..storage.inputs import sequence
from ..storage.location import is_same_file
from ..storage.unfinished import UnfinishedFile
from ..utils.thread_pool import Closable, closing_on_error
from .recipe import Recipe, ordinary_priority

ENDINGS = (".mkv", ".mp4", ".webm")
"""The endings of files that can be written."""


def checked_output(output: str | os.PathLike[str] | None, source: str, recipe: Recipe, *, force: bool) -> str | None:
    """Return the path of a file, or None.

    Raises OutputError if it cannot be written, is one that `source` is read from, or cannot hold such video, and unless `force`
    is True if players would show wrong colours. A link stands for the file to which it leads.
    """
    if output is None:
        return None
    path = os.fspath(output)
    if recipe.facts.dolby_vision is not None and not force:
        raise OutputError(
            f"`output` {path}: {source} is Dolby Vision of profile {recipe.facts.dolby_vision}, whose colours are defined by"
            " metadata that the encode does not have, so players would show green and purple. Convert the source first, or"
            " write the file all the same with `force`"
        )

    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise OutputError(f"`output` {path} ends in {ending or 'nothing'}; the endings are {', '.join(ENDINGS)}")
    if ending == ".webm" and recipe.encoder.decoder not in ("vp9", "libdav1d"):
        raise OutputError(f"`output` {path}: WebM holds VP9 and AV1, not what {recipe.encoder.name} makes; give a .mkv")

    real = os.path.realpath(path)
    if os.path.islink(real):
        raise OutputError(f"`output` {path} is a symbolic link that leads to itself; give the name of a file")
    check_writable(Path(real))
    if os.path.exists(path) and not os.path.isfile(path):
        raise OutputError(f"`output` {path} is a device or a pipe; a video can be written to an ordinary file alone")

    pictures = sequence(source)
    if any(is_same_file(path, name) for name in ([source] if pictures is None else pictures.files)):
        raise OutputError(f"`output` {path} would overwrite the source; give it a name of its own")
    return path


class VideoOutput(Closable):
    """A video file that is written beside its final name; use it with `with`. It is removed unless `keep` is called.

    It may be made of `parts`, which are encoded one by one and have their headers in them. Raises OutputError.
    """

    def __init__(self, path: str, source: str, recipe: Recipe, *, parts: bool = False) -> None:
        self.notes: list[str] = []  # on its losses against the source
        self.encoder: Any = None  # encodes the video, opened with the headers of the file; None for parts
        self._last: int | None = None  # the decoding time of the last packet
        self._path = path
        self._ending = Path(path).suffix.lower()
        self._stack = ExitStack()
        self._rest: Iterator[Any] = iter(())
        self._next: Any = None
        self._targets: dict[int, Any] = {}
        with closing_on_error(self):
            # the file to which a link leads may have any name
            self._file = self._stack.enter_context(UnfinishedFile(Path(os.path.realpath(path)), self._ending))
            self._open(source, recipe, parts=parts)

    def _open(self, source: str, recipe: Recipe, *, parts: bool) -> None:
        import av

        with self._errors():
            self._from = self._stack.enter_context(open_clip(source))
            self._to = self._stack.enter_context(av.open(local_name(self._file.name), "w"))
        video: Any = self._to.add_stream(recipe.encoder.name, rate=recipe.facts.rate)
        self._video = video
        if parts:
            recipe.set_up(video.codec_context, 0)
            with ordinary_priority():
                video.codec_context.open()  # for the headers of the file; it encodes nothing
        else:
            self.encoder = video.codec_context
        self._to.metadata.update({name: value for name, value in self._from.metadata.items() if name in ("title", "comment")})
        read = self._from.streams.video[recipe.facts.video].index
        copied = [stream for stream in self._from.streams if stream.index != read and self._copy(stream)]
        with suppress(ValueError, OSError, av.FFmpegError):
            self._to.set_chapters(self._from.chapters())
        if copied:
            self._rest = (packet for packet in self._from.demux(copied) if packet.dts is not None)
            if self._ending != ".mp4" and "mp4" in self._from.format.name:
                self._rest = filter(_is_shown, self._rest)
        self._note_losses(recipe)

    def _copy(self, stream: Any) -> bool:
        """Add a stream that is copied; return whether it has packets. Streams that are left out are noted."""
        is_copied = stream.type in ("audio", "subtitle", "attachment")
        codec = None if stream.type == "attachment" else stream.codec_context
        try:
            if stream.type == "attachment" and self._ending == ".mkv" and stream.name and stream.mimetype and stream.data:
                self._to.add_attachment(stream.name, stream.mimetype, stream.data)  # such as a font of subtitles
                return False
            if not is_copied or codec is None or codec.name not in self._to.supported_codecs:
                raise ValueError(stream.type)
            target = self._to.add_stream_from_template(stream)
        except (ValueError, OSError):
            why = f"{self._ending} cannot hold it" if is_copied else "sound, subtitles and attachments alone are copied"
            self.notes.append(f"stream {stream.index} ({stream.type}) is left out: {why}")
            return False
        target.metadata.update(stream.metadata)
        with suppress(AttributeError, ValueError):
            target.disposition = stream.disposition
        self._targets[stream.index] = target
        return True

    def _note_losses(self, recipe: Recipe) -> None:
        facts = recipe.facts
        if facts.aspect != 1 and recipe.encoder.decoder in ("vp9", "libdav1d") and self._ending != ".mp4":
            self.notes.append(
                f"the shape of the samples, {facts.aspect}, is not kept: {recipe.encoder.name} does not write it, and PyAV"
                f" cannot write it into {self._ending}; .mp4 keeps it, and so does the command line of FFmpeg"
            )
        if (facts.mastering.display or facts.mastering.light) and recipe.encoder.own is None:
            self.notes.append(f"HDR metadata is not kept: {recipe.encoder.name} takes none")

    def mux(self, packet: Any) -> None:
        """Write a packet of the video, and those of the other streams that come before it."""
        with self._errors():
            if self._last is None and packet.pts is not None and packet.pts < 0:
                self._to.options["avoid_negative_ts"] = "make_zero"  # an .mp4 would hide frames that are presented before 0
            if packet.dts is not None:
                if self._last is not None and packet.dts <= self._last:
                    packet.dts = self._last + 1  # a part may begin to decode earlier than the one before it has ended
                self._last = packet.dts
                self._copy_until(packet.dts * packet.time_base)
            packet.stream = self._video
            self._to.mux(packet)

    def _copy_until(self, seconds: Fraction | None) -> None:
        """Copy the packets up to a time, or all that are left."""
        while True:
            if self._next is None:
                self._next = next(self._rest, None)
            if self._next is None or (seconds is not None and self._next.dts * self._next.time_base > seconds):
                return
            packet, self._next = self._next, None
            packet.stream = self._targets[packet.stream.index]
            self._to.mux(packet)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise OutputError for the errors of FFmpeg and of the system."""
        import av

        try:
            yield
        except (av.FFmpegError, OSError) as error:
            raise OutputError(f"{self._path} cannot be written: {error.strerror or error}") from None

    def keep(self) -> None:
        """Finish the file, and give it its name."""
        with self._errors():
            self._copy_until(None)
            self._to.close()
            self._file.keep()

    def close(self) -> None:
        """Remove the file unless it was kept."""
        with suppress(OSError, ValueError):
            self._stack.close()


def _is_shown(packet: Any) -> bool:
    """Return whether an edit list shows a packet from its beginning on.

    Other files than MP4 have no edit lists: a hidden part would be heard there, and would delay all streams. A part of a packet
    cannot be copied. The samples that Opus itself marks as inaudible, by RFC 7845, stay.
    """
    head = bytes(packet.stream.codec_context.extradata or b"")
    unheard = Fraction(int.from_bytes(head[10:12], "little"), 48000) if head.startswith(b"OpusHead") else 0
    return not packet.is_discard and (packet.pts is None or packet.pts * packet.time_base >= -unheard)
