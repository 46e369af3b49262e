"""Read the side data of decoded frames, such as the display matrix and HDR metadata."""

from __future__ import annotations

from typing import Any


def side_data(frame: Any, name: str) -> bytes | None:
    """Return side data of a frame of PyAV, by PyAV's name for its kind, as FFmpeg's struct; None where the frame has none.

    Raises ValueError where the frame also has side data of a kind that PyAV does not know, such as the EXIF data of MJPEG: then
    PyAV gives nothing at all.
    """
    data = frame.side_data.get(name)
    return None if data is None else bytes(data)
