"""Hold the clips to score and the way to score them, as two values that every layer passes on unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..backends.open import unknown_backend
from ..features.plane_metrics import FrameMetrics, plane_formats
from ..frames.decode.hardware import HardwareDecoder, check_decode
from ..frames.options import PictureOptions, RawDescription, Selection, check_sync
from ..report.thresholds import Threshold, check_names
from ..types import FrameFormat
from ..utils.choices import BACKENDS, DECODERS

Selector = str | int | Sequence[str | int] | None
"""One device (see `Scorer`), or several: ``"all"``, a list, or a text with commas between the devices."""


@dataclass(frozen=True)
class Clips:
    """Hold the two clips of a pair, by path or URL. `raw` describes the clips that are raw files."""

    reference: str
    distorted: str
    raw: RawDescription = field(default_factory=RawDescription)

    @property
    def paths(self) -> tuple[str, str]:
        """Return the reference and the distorted clip."""
        return self.reference, self.distorted


@dataclass(frozen=True)
class ScoreOptions:
    """Hold the options by which every clip is scored; see `score_files`.

    `decode` is the decoder that the user asked for. `decoder` is the hardware that it stands for, None for the processor alone;
    it is known once the device is chosen.
    """

    features: tuple[str, ...]
    planes: str = "y"
    selection: Selection = field(default_factory=Selection)
    sync: str = "index"
    pictures: PictureOptions = field(default_factory=PictureOptions)
    strict: bool = False
    backend: str = "vulkan"
    device: str | int | None = None
    decode: str = DECODERS[0]
    decoder: HardwareDecoder | None = None

    @property
    def chroma(self) -> bool:
        """Return True where chroma is scored as well."""
        return self.planes != "y"


_LARGE_ENOUGH = 1024  # a side that is long enough for every metric with every option


def check_options(options: ScoreOptions, thresholds: Sequence[Threshold] = ()) -> None:
    """Raise OptionError for an unknown feature, option or threshold. Call it before anything is opened."""
    check_sync(options.sync)
    if options.backend not in BACKENDS:
        raise unknown_backend(options.backend)
    check_decode(options.decode)
    formats = plane_formats(FrameFormat.of_bits(_LARGE_ENOUGH, _LARGE_ENOUGH, 8), options.planes, "420")
    metrics = FrameMetrics(options.features, formats, total=options.planes == "all")
    check_names(thresholds, metrics.names, metrics.similarities)
