"""Read what comes with a decoded frame: which field is first, and side data, such as the display matrix and HDR metadata."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

_ORDERS = {1: "top field first", 2: "bottom field first"}
"""The orders by the constants of FFmpeg's filter `select`."""


def field_order(frame: Any) -> str:
    """Return one of `FIELD_ORDERS`. PyAV does not tell the order of fields; a filter of FFmpeg does."""
    if not frame.interlaced_frame:
        return "progressive"
    return next((order for number, order in _ORDERS.items() if _passes(frame, number)), "interlaced")


def _passes(frame: Any, interlace_type: int) -> bool:
    from av import FFmpegError
    from av.filter import Graph

    graph = Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25))
    select = graph.add("select", f"eq(interlace_type,{interlace_type})")
    source.link_to(select)
    select.link_to(graph.add("buffersink"))
    graph.configure()
    source.push(frame)
    try:
        graph.pull()
    except FFmpegError:  # the filter has no frame to pull
        return False
    return True


def side_data(frame: Any, name: str) -> bytes | None:
    """Return side data of a frame of PyAV, by PyAV's name for its kind, as FFmpeg's struct; None where the frame has none.

    Raises ValueError where the frame also has side data of a kind that PyAV does not know, such as the EXIF data of MJPEG: then
    PyAV gives nothing at all.
    """
    data = frame.side_data.get(name)
    return None if data is None else bytes(data)
