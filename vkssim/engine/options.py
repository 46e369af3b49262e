"""The clips to score and the way to score them, as two values that every layer passes on unchanged, and their checks."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ..backends.open import check_backend
from ..errors import InputError
from ..frames.decode.hardware import HardwareDecoder, check_decode
from ..frames.options import PictureOptions, RawDescription, Selection
from ..metrics import reads_chroma
from ..metrics.plane_metrics import FrameMetrics, plane_formats
from ..report.thresholds import Threshold, check_names
from ..storage.location import is_url, redact_url
from ..types import FrameFormat
from ..utils.choices import DECODERS, SYNC

Selector = str | int | Sequence[str | int] | None
"""One device (see `Scorer`), or several: ``"all"``, a list, or a text with commas between the devices."""


@dataclass(frozen=True)
class Clips:
    """The two clips of a pair, by path or URL."""

    reference: str
    distorted: str
    raw: RawDescription = field(default_factory=RawDescription)
    """The description of the clips that are raw files."""

    @property
    def paths(self) -> tuple[str, str]:
        """Return the reference and the distorted clip."""
        return self.reference, self.distorted


@dataclass(frozen=True)
class ScoreOptions:
    """The options by which every clip is scored; see `score_files`."""

    features: tuple[str, ...]
    planes: str = "y"
    selection: Selection = field(default_factory=Selection)
    sync: str = "index"
    pictures: PictureOptions = field(default_factory=PictureOptions)
    strict: bool = False
    backend: str = "vulkan"
    decode: str = DECODERS[0]
    """The decoder that the user selects."""
    decoder: HardwareDecoder | None = None
    """The hardware of that decoder, None for the CPU alone; a worker sets it for its device."""

    @property
    def chroma(self) -> bool:
        """Return True if chroma is scored as well, or a metric of the luma reads it."""
        return self.planes != "y" or reads_chroma(self.features)


_STANDARD_INPUT = "-"
_LARGE_ENOUGH = 1024  # a side that is long enough for every metric with every option


def check_options(options: ScoreOptions, thresholds: Sequence[Threshold] = (), merged: Collection[str] = ()) -> None:
    """Raise OptionError for an unknown feature, option or threshold. Call it before anything is opened.

    `merged` names scores that are not computed, and are added from files.
    """
    SYNC.check(options.sync)
    check_backend(options.backend)
    check_decode(options.decode)
    formats = plane_formats(FrameFormat.of_bits(_LARGE_ENOUGH, _LARGE_ENOUGH, 8), options.planes, "420")
    metrics = FrameMetrics(options.features, formats, total=options.planes == "all")
    check_names(thresholds, dict.fromkeys([*metrics.names, *merged]), metrics.similarities)


def check_inputs(reference: str, distorted: str) -> None:
    """Raise InputError if both inputs are one pipe, which can be read only once, or one is a device such as /dev/zero."""
    if reference == distorted == _STANDARD_INPUT:
        raise InputError("reference and distorted are both standard input; one of them must be a file")
    states = [_state(name) for name in (reference, distorted)]
    for name, state in zip((reference, distorted), states, strict=True):
        if name != _STANDARD_INPUT and state is not None and stat.S_ISCHR(state.st_mode):
            raise InputError(
                f"{redact_url(name)} is a character device, not a video; give a file, a pipe, or - for standard input"
            )
    first, second = states
    if first is not None and second is not None and stat.S_ISFIFO(first.st_mode) and os.path.samestat(first, second):
        raise InputError(
            f"reference and distorted are the same pipe, {redact_url(reference)}; each frame goes to only one of them."
            " Give two pipes, or a file"
        )


def _state(name: str) -> os.stat_result | None:
    """Return the file status of an input. Return None for a URL and for a missing file, which is refused when it is opened."""
    if is_url(name):
        return None
    try:
        return os.fstat(0) if name == _STANDARD_INPUT else os.stat(name)
    except (OSError, ValueError):
        return None
