"""The record of how a report was scored: everything that its scores depend on, as plain values.

An option that scores depend on is declared once, as a field of `Selection`, `PictureOptions` or `RawDescription`. The facts
about a clip are declared in `ClipFacts`. A field that is added to one of them automatically appears in every form of a report,
in the schema, in comparisons and, if it has a flag, in the command.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from ..frames.info import ClipFacts
from ..frames.options import PictureOptions, RawDescription, Selection
from ..utils.facts import ComparisonRule, as_text, fact, facts_of, given_facts

_FREE, _NOTED = ComparisonRule.FREE, ComparisonRule.NOTED


@dataclass(frozen=True)
class FeatureFacts:
    """A metric of one plane: all of its options with the values that were used.

    `automatic` are the options whose values follow from the size of the plane. `limit_db` is the largest score in dB.
    """

    name: str = field(metadata=fact("name"))
    plane: str = field(metadata=fact("plane"))
    options: Mapping[str, str | float | bool] = field(metadata=fact("options"))
    automatic: tuple[str, ...] = field(default=(), metadata=fact("automatic options", _FREE))
    limit_db: float | None = field(default=None, metadata=fact("limit", unit="dB"))


@dataclass(frozen=True, kw_only=True)
class ScoringRecord:
    """The record of how two clips were scored.

    `command` is a command that scores them the same way; it names no device and no output. `width`, `height`, `bits` and
    `chroma` (None if only luma was scored) describe the frames that were compared, after all preprocessing. `cropped_to` is the
    rectangle of ``--crop``. `reference` and `distorted` describe the clips before preprocessing.
    """

    version: str = field(metadata=fact("version of vkssim", _NOTED))
    command: str = field(metadata=fact("command", _FREE))
    features: tuple[FeatureFacts, ...] = field(metadata=fact("features", _FREE))  # features are compared one by one
    planes: str = field(metadata=fact("planes", flag="--planes"))
    sync: str = field(metadata=fact("sync", flag="--sync"))
    width: int = field(metadata=fact("width compared", across=_FREE))
    height: int = field(metadata=fact("height compared", across=_FREE))
    bits: int = field(metadata=fact("depth compared", _NOTED, across=_FREE, unit="bit"))
    chroma: str | None = field(default=None, metadata=fact("chroma compared", across=_FREE))
    cropped_to: str | None = field(default=None, metadata=fact("cropped to", across=_FREE))
    selection: Selection = field(default_factory=Selection, metadata=fact("selection"))
    pictures: PictureOptions = field(default_factory=PictureOptions, metadata=fact("pictures"))
    raw: RawDescription = field(default_factory=RawDescription, metadata=fact("raw files"))
    reference: ClipFacts = field(metadata=fact("reference"))
    distorted: ClipFacts = field(metadata=fact("distorted clip"))


def given_flags(options: Any, defaults: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Yield the words of a command line for the options that differ from these defaults, or from their own."""
    defaults = defaults or {option.name: option.default for option in fields(options)}
    for name, entry in facts_of(type(options)).items():
        value = getattr(options, name)
        if entry.flag is not None and value != defaults[name]:
            yield from (entry.flag,) if value is True else (entry.flag, str(value))


def flatten(record: ScoringRecord) -> Iterator[tuple[str, str, bool]]:
    """Yield the facts of the record: the title of each, its text, and whether it has its default value."""
    for name, entry in facts_of(ScoringRecord).items():
        value = getattr(record, name)
        if name == "features":
            yield entry.title, "; ".join(map(feature_text, record.features)), False
        elif is_dataclass(value):
            given = given_facts(value)
            for option in fields(value):
                if option.name in given:
                    single, inner = given[option.name], facts_of(type(value))[option.name]
                    yield f"{entry.title}: {inner.title}", inner.text(single), single == option.default
        else:
            yield entry.title, entry.text(value), value is None


def feature_text(feature: FeatureFacts) -> str:
    """Return a feature with all its options, as on a command line, and with its plane unless that is the luma."""
    options = ":".join(f"{name}={as_text(value)}" for name, value in feature.options.items())
    return "=".join(filter(None, [feature.name, options])) + ("" if feature.plane == "y" else f" of {feature.plane}")
