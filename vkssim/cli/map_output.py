"""Write the SSIM maps of a command to a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OptionError, OutputError
from ..utils.values import Section
from .command import option
from .options import option_group

if TYPE_CHECKING:
    from ..frames.options import RawDescription
    from ..report.results import ScoreReport

_DEFAULT_FRAMES = "worst:5"
_NAME = re.compile(r"frame_\d{6,}\.(png|npy)")


@dataclass(frozen=True)
class MapOutput:
    """The folder of SSIM maps, and the frames that have maps; None if they were not given."""

    folder: str | None
    frames: str | None

    def check(self, inputs: Sequence[str]) -> None:
        """Make the folder, and raise as OptionError or OutputError what would else be found out after scoring."""
        if self.folder is None:
            if self.frames is not None:
                raise OptionError(f"--map-frames {self.frames} says which maps are written; --map DIR has to say where")
            return
        from ..frames.inputs import input_states
        from ..maps.frames import check_can_reopen, check_pictures, parse_choice
        from ..storage.atomic import check_writable

        parse_choice(self.frames or _DEFAULT_FRAMES)
        for picture, *_ in chain.from_iterable(map(input_states, inputs)):
            where, file = os.path.split(picture)
            if _NAME.fullmatch(file) and os.path.realpath(where) == os.path.realpath(self.folder):
                raise OutputError(f"--map {self.folder} would overwrite {picture}, which is read; give a folder of its own")
        check_can_reopen(inputs)
        check_pictures()
        folder = Path(self.folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"--map {folder} cannot be made: {error.strerror}") from None
        check_writable(_path(folder, 0, "png"))

    def write(self, report: ScoreReport, *, raw: RawDescription, backend: str, device: str | None) -> None:
        """Write a PNG and an NPY file for each of the frames chosen, of the window that float_ssim was asked for."""
        if self.folder is None:
            return
        import io

        import numpy as np

        from ..maps.frames import choose_frames, png, scored_pictures
        from ..maps.picture import map_picture
        from ..storage.atomic import write_file

        folder = Path(self.folder)
        chosen = choose_frames(report, self.frames or _DEFAULT_FRAMES)
        for frame in scored_pictures(report, chosen, raw=raw, backend=backend, device=device, urls=True):
            png(_path(folder, frame.index, "png"), map_picture(frame, report))
            numbers = io.BytesIO()
            np.save(numbers, frame.ssim_map, allow_pickle=False)
            write_file(numbers.getvalue(), _path(folder, frame.index, "npy"))


def _path(folder: Path, index: int, ending: str) -> Path:
    return folder / f"frame_{index:06d}.{ending}"


map_options = option_group(
    "maps",
    MapOutput,
    option("--map folder", Section.OUTPUTS, "Write SSIM maps of some frames there, as PNG and NPY.", metavar="DIR"),
    option(
        "--map-frames frames",
        Section.OUTPUTS,
        f"Choose the frames that have maps: the worst, every N-th scored, or numbers such as 3,17. Default: {_DEFAULT_FRAMES}.",
        metavar="worst:N|every:N|LIST",
    ),
)
