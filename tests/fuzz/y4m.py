"""Y4M, header and frames, from a file and from a pipe."""

from __future__ import annotations

from vkssim import Selection, score_files

from .harness import Choices, refusals, scratch
from .pipes import pipe_of

FEATURE = "float_ssim=scale=1"
REFERENCE = b"YUV4MPEG2 W16 H12 F25:1 C420\n" + b"".join(b"FRAME\n" + bytes(range(16)) * 18 for _ in range(3))


def one_input(data: bytes) -> None:
    """A clip against itself, and from a pipe against another."""
    choices = Choices(data)
    selection = choices.pick([Selection(), Selection(subsample=2), Selection(start=1, count=1), Selection(start="0.04s")])
    sync = choices.pick(["index", "pts"])
    content = b"YUV4MPEG2" + choices.rest()
    path = str(scratch("clip.y4m", content))
    with refusals():
        score_files(path, path, features=FEATURE, selection=selection, sync=sync, backend="cpu")
    with refusals(), pipe_of(content) as pipe:
        score_files(str(scratch("reference.y4m", REFERENCE)), pipe, features=FEATURE, selection=selection, backend="cpu")
