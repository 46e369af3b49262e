"""Where the maps of a command go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import OptionError, OutputError
from .options import option_group

if TYPE_CHECKING:
    from ..frames.open import RawDescription
    from ..results import ScoreReport

_DEFAULT_FRAMES = "worst:5"


@dataclass(frozen=True)
class MapOutput:
    """The folder that SSIM maps go to, and of which frames; None where that was not said."""

    folder: str | None
    frames: str | None

    def check(self, inputs: Sequence[str]) -> None:
        """Make the folder, and raise as OptionError or OutputError what would else be found out after scoring."""
        if self.folder is None:
            if self.frames is not None:
                raise OptionError(f"--map-frames {self.frames} says which maps are written; --map DIR has to say where")
            return
        from ..maps import FrameChoice, check_pictures, check_readable_again
        from ..report import check_writable

        FrameChoice.parse(self.frames or _DEFAULT_FRAMES)
        check_readable_again(inputs)
        check_pictures()
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"--map {folder} cannot be made: {error.strerror}") from None
        check_writable(_path(folder, 0, "png"))

    def write(self, report: ScoreReport, *, raw: RawDescription, backend: str, device: str | None) -> None:
        """A PNG and an NPY file for each of the frames chosen."""
        if self.folder is None:
            return
        import io

        import numpy as np

        from ..maps import choose_frames, colour, png, scored_pictures
        from ..replacing import write_file

        folder = Path(self.folder)
        chosen = choose_frames(report, self.frames or _DEFAULT_FRAMES)
        for frame in scored_pictures(report, chosen, raw=raw, backend=backend, device=device, urls=True):
            png(_path(folder, frame.index, "png"), colour(frame.ssim_map))
            numbers = io.BytesIO()
            np.save(numbers, frame.ssim_map, allow_pickle=False)
            write_file(numbers.getvalue(), _path(folder, frame.index, "npy"))


def _path(folder: Path, index: int, ending: str) -> Path:
    return folder / f"frame_{index:06d}.{ending}"


map_options = option_group(
    "maps",
    MapOutput,
    click.Option(["--map", "folder"], metavar="DIR", help="Write SSIM maps of some frames there, as PNG and NPY."),
    click.Option(
        ["--map-frames", "frames"],
        metavar="worst:N|every:N|LIST",
        help=f"Which frames have maps: the worst, every N-th scored, or numbers such as 3,17. Default: {_DEFAULT_FRAMES}.",
    ),
)
