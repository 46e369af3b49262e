"""The record of how a report was scored: everything that its scores depend on, as plain values.

A field that is added to `Selection`, `PictureOptions`, `RawDescription` or `ClipFacts` appears in every form of a report, the
schema, comparisons and, if it has a flag, in the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from ..frames.info import ClipFacts as ClipFacts
from ..frames.options import PictureOptions as PictureOptions
from ..frames.options import RawDescription as RawDescription
from ..frames.options import Selection as Selection
from ..utils.choices import PLANE_CHOICE, SYNC
from ..utils.values import ComparisonRule, as_text, given_values, value, values_of

_FREE, _NOTED = ComparisonRule.FREE, ComparisonRule.NOTED


@dataclass(frozen=True)
class FeatureFacts:
    """A metric of one plane."""

    name: str = value("name")
    plane: str = value("plane")
    options: Mapping[str, str | float | bool] = value("options")
    """All of its options with the values that were used."""
    automatic: tuple[str, ...] = value("automatic options", differs=_FREE, default=())
    """The options whose values follow from the size of the plane."""
    limit_db: float | None = value("limit", unit="dB", default=None)
    """The largest score in dB."""


@dataclass(frozen=True, kw_only=True)
class ScoringRecord:
    """The record of how two clips were scored; `reference` and `distorted` are the clips before all preprocessing."""

    version: str = value("version of vkssim", differs=_NOTED)
    command: str = value("command", differs=_FREE)
    """A command that scores them the same way; it names no device and no output."""
    features: tuple[FeatureFacts, ...] = value("features", differs=_FREE)  # features are compared one by one
    planes: str = field(metadata={"value": PLANE_CHOICE})
    sync: str = field(metadata={"value": SYNC})
    width: int = value("width compared", across=_FREE)
    height: int = value("height compared", across=_FREE)
    bits: int = value("depth compared", differs=_NOTED, across=_FREE, unit="bit")
    chroma: str | None = value("chroma compared", across=_FREE, default=None)
    """None if only luma was scored."""
    cropped_to: str | None = value("cropped to", across=_FREE, default=None)
    """The rectangle of ``--crop``."""
    selection: Selection = value("selection", default_factory=Selection)
    pictures: PictureOptions = value("pictures", default_factory=PictureOptions)
    raw: RawDescription = value("raw files", default_factory=RawDescription)
    reference: ClipFacts = value("reference")
    distorted: ClipFacts = value("distorted clip")


def given_flags(options: Any) -> Iterator[str]:
    """Yield the words of a command line for the options that differ from their defaults."""
    for name, entry in values_of(type(options)).items():
        given = getattr(options, name)
        if entry.flag is not None and given != entry.default:
            yield from (entry.flag,) if given is True else (entry.flag, str(given))


def flatten(record: ScoringRecord) -> Iterator[tuple[str, str, bool]]:
    """Yield the values of the record: the title of each, its text, and whether it is the default."""
    for name, entry in values_of(ScoringRecord).items():
        single = getattr(record, name)
        if name == "features":
            yield entry.title, "; ".join(map(feature_text, record.features)), False
        elif is_dataclass(single):
            declared = values_of(type(single))
            for key, part in given_values(single).items():
                yield f"{entry.title}: {declared[key].title}", declared[key].text(part), part == declared[key].default
        else:
            yield entry.title, entry.text(single), single is None


def feature_text(feature: FeatureFacts) -> str:
    """Return a feature with all its options, as on a command line, and with its plane unless that is the luma."""
    options = ":".join(f"{name}={as_text(value)}" for name, value in feature.options.items())
    return "=".join(filter(None, [feature.name, options])) + ("" if feature.plane == "y" else f" of {feature.plane}")
