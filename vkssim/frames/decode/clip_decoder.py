"""Open a clip with PyAV, and begin to decode its stream: with threads, without them, or by hardware."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import av

from ...errors import InputError
from ...storage.containers import choose_stream, lacks_index, open_container
from ...storage.inputs import PictureSequence, sequence
from ..info import check_size
from ..raw import unreadable
from .decoder import FROM_START, Begin, Decoder, UndecodableError, reason, threads_help
from .hardware import EXACT, HardwareDecoder, stream_kind
from .packets import PacketCount

FAILURES = av.FFmpegError, OSError
"""The errors of reading a packet and decoding it; OSError if a URL can no longer be read."""


class UnknownFormatError(InputError):
    """A file has a format that FFmpeg does not support, or one that vkssim refuses."""


class ClipDecoder:
    """The container of a clip, and the decoder of its stream, which `start` makes anew. It has to be closed."""

    def __init__(self, path: str, index: int | None, *, adds_grain: bool = True) -> None:
        self.path = path
        self.index = index
        """The index of the stream; None leaves the choice to `choose_stream`."""
        self.adds_grain = adds_grain
        self.sequence: PictureSequence | None = None
        """The files of a sequence of pictures, which is one container."""
        self.container: Any = None
        self.stream: Any = None
        self.codec: Any = None
        """The codec that FFmpeg chooses first."""
        self.decoder: Decoder
        self._hardware: HardwareDecoder | None = None  # which decodes
        self.kind: tuple[Hashable, ...] = ()
        """The kind of the stream, if hardware decodes it."""
        self._is_unread = False  # whether the container is open, and no decoder reads it
        self._counts: list[PacketCount] = []  # of all decoders

    @property
    def bytes_read(self) -> int:
        """Return the bytes of all packets that were read."""
        return sum(count.bytes for count in self._counts)

    def open(self, hwaccel: Any = None, *, packets_only: bool = False) -> Any:
        """Open the container again. Raises UnknownFormatError, InputError for a missing index, and errors of `hwaccel`."""
        self.sequence = sequence(self.path)
        try:
            container = open_container(self.path, self.sequence, hwaccel, packets_only=packets_only)
        except (*FAILURES, ValueError) as error:
            if hwaccel is not None:
                raise
            if isinstance(error, av.InvalidDataError):
                self._check_index()
            raise UnknownFormatError(f"{self.path}: FFmpeg cannot open it ({reason(error)})") from None
        if not len(container.streams):
            self._check_index()
        return container

    def _check_index(self) -> None:
        if lacks_index(self.path):
            raise InputError(
                f"{self.path}: the index (moov) is missing or damaged: the file is cut off, or still being written"
            ) from None

    def start(self, *, threads: bool, begin: Begin = FROM_START, hardware: HardwareDecoder | None = None) -> None:
        """Close the open container, open it again, and decode from its beginning."""
        own = None if hardware is None else hardware.own_codec(self.codec)
        context = self._open_stream(None if hardware is None or own is not None else hardware.request())
        if hardware is not None and own is not None:
            context = hardware.open_codec(own, self.stream)
        self._decode(context, threads, begin, hardware)

    def take_over(self, begin: Begin, hardware: HardwareDecoder) -> bool:
        """Open the container, and decode with a decoder that another clip has left open. Return whether there is one.

        If it is known from an earlier look that there is none for its codec, the container is not opened.
        """
        context = None
        if self._is_unread or self.codec is None or hardware.idle.has(self.codec.canonical_name):
            kind = stream_kind(self.open_stream(), adds_grain=self.adds_grain)
            context = hardware.idle.take(kind[:-1])
        if context is not None:
            self._decode(context, False, begin, hardware)
        return context is not None

    def open_stream(self) -> Any:
        """Open the container for `take_over`, unless it is open and unread, and return the codec context of its stream."""
        if not self._is_unread:
            self._open_stream(None)
            self._is_unread = True
        return self.stream.codec_context

    def _open_stream(self, hwaccel: Any) -> Any:
        self._let_go()
        self.container = self.open(hwaccel)
        self.stream = choose_stream(self.path, self.container, self.index)
        context = self.stream.codec_context
        if context is None:
            raise InputError(f"{self.path}: FFmpeg has no decoder for its video")
        check_size(max(1, context.width), max(1, context.height), self.path)  # 0 means unknown
        self.codec = self.codec or context.codec
        return context

    def _decode(self, context: Any, threads: bool, begin: Begin, hardware: HardwareDecoder | None) -> None:
        self.decoder = Decoder(
            self.container,
            self.stream,
            context,
            threads=threads,
            begin=begin,
            hardware=hardware is not None,
            adds_grain=self.adds_grain,
        )
        self._hardware, self._is_unread = hardware, False
        self.kind = stream_kind(self.stream.codec_context, adds_grain=self.adds_grain)
        self._counts.append(self.decoder.count)
        _decoders[self] = context

    def begin(self) -> Any:
        """Decode on the CPU from the beginning, on threads if they help, and return the first frame.

        A recording may begin between key frames. Packets that cannot be decoded there are skipped, and do not count as damage.
        Only a decoder without threads shows which ones.
        """
        threads = threads_help()
        if threads and (first := self._first_sound_frame(FROM_START)) is not None:
            return first
        first = self._first_frame()
        if not (threads and self.decoder.skipped_packets):
            return first
        again = self._first_sound_frame(self.decoder.begin)
        return again if again is not None and again.pts == first.pts else self._first_frame()

    def continue_from(self, first: Any) -> Any:
        """Return the first frame of a decoder without threads; if threads help, decoded again by one that has them."""
        return self.begin() if threads_help() else first

    def first_frames(self) -> Iterator[Any]:
        """Yield the first frame, without threads: decoded alone if that is possible, which is quick, and then as usual.

        Further frames can be decoded only after the usual one. Only codecs that hardware may decode are decoded alone, because
        several packets are read for that, and those of other codecs may be large.
        """
        self.start(threads=False)
        if self.codec.canonical_name in EXACT:
            alone = self.decoder.decode_first_alone()
            if alone is not None:
                yield alone
            self.start(threads=False)
        yield self._read_first()

    def _first_sound_frame(self, begin: Begin) -> Any:
        """Decode with threads, and return the first frame; None if there was any sign of damage so far."""
        self.start(threads=True, begin=begin)
        with suppress(*FAILURES, UndecodableError):
            first = self.decoder.next()
            return None if self.decoder.reports or self.decoder.skipped_packets else first
        return None

    def _first_frame(self) -> Any:
        self.start(threads=False)
        return self._read_first()

    def _read_first(self) -> Any:
        why = None
        try:
            first = self.decoder.next()
        except (av.FFmpegError, UndecodableError) as failure:
            first, why = None, reason(failure)
        except OSError as failure:
            raise unreadable(self.path, failure) from None
        if first is None:
            why = why or self.decoder.failure
            raise InputError(f"{self.path}: no frame can be decoded from it" + (f" ({why})" if why else ""))
        return first

    def _let_go(self) -> None:
        """Close the container, and the decoder unless another clip may take it over."""
        codec = _decoders.pop(self, None)  # existing forks keep it
        if codec is not None:
            self.decoder.close()
        if self.container is not None:
            self.container.close()
        if codec is not None and self._hardware is not None and self.decoder.is_sound:
            self._hardware.idle.put(self.kind[:-1], codec)
        self.container = self.stream = None
        self._is_unread = False

    def close(self) -> None:
        """Close the container and the decoder; a second call does nothing."""
        self._let_go()


# A forked child has no threads of FFmpeg, so freeing a decoder there would wait for them forever: it keeps the open ones.
_decoders: WeakKeyDictionary[ClipDecoder, Any] = WeakKeyDictionary()


def _in_child() -> None:
    for decoder in _decoders.values():
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(decoder))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
