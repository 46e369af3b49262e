"""Read a file of scores or of clips' names as a whole, up to a limit."""

from __future__ import annotations

import os
import stat

from ..errors import InputError
from ..utils.limits import abbreviated
from ..utils.signatures import HEAD_BYTES, video_form
from . import remote


def read_whole(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a file of scores or of clips' names, from a path, a URL or a pipe.

    Raises InputError if it cannot be read, has more than `most` bytes, or is a video.
    """
    name = remote.named(path)
    try:
        if remote.is_url(name):
            size = remote.size(name)
            data = remote.read(name, 0, min(size, HEAD_BYTES) if size > most else size)
        else:
            with open(path, "rb") as file:
                state = os.fstat(file.fileno())
                size = state.st_size if stat.S_ISREG(state.st_mode) else 0
                data = file.read(HEAD_BYTES if size > most else most + 1)
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{abbreviated(os.fspath(path))} is not a possible file name: {error}") from None
    video = video_form(data)
    if video is not None:
        raise InputError(
            f"{name} is a video ({video}); score it first: `vkssim score -r REFERENCE -d {name} -o SCORES.json` writes a"
            " report, `vkssim batch MANIFEST.csv -o RESULTS.csv` a table of all pairs of clips that MANIFEST.csv lists in its"
            " columns reference and distorted"
        )
    if max(size, len(data)) > most:
        raise InputError(f"{name} has {max(size, len(data))} bytes or more; the limit for such a file is {most}")
    return data
