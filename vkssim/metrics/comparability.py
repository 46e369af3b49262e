"""Decide whether scores may be compared: find differences in how they were made, and refuse, warn or note each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ..errors import InputError
from ..frames.info import ClipFacts
from ..report.record import FeatureFacts, ScoringRecord
from ..report.results import ScoreReport
from ..utils.values import ComparisonRule, Difference, as_text, compared_values, differences, sentence, values_of
from . import FEATURES
from .vmaf import OF_ENCODING

_MAX_NAMED = 3


@dataclass(frozen=True)
class Scored:
    """A scored clip: a name for people, the reference that it was compared with, and the record of how it was scored.

    `record` is None if nothing is recorded, as in reports of libvmaf's tools and of older versions of vkssim.
    """

    name: str
    reference: str
    record: ScoringRecord | None


def scored_reports(reports: Sequence[ScoreReport], names: Iterable[str]) -> list[Scored]:
    """Return the records of reports under these names."""
    return [Scored(name, report.reference, report.scoring) for name, report in zip(names, reports, strict=True)]


@dataclass
class Findings:
    """The sentences about scores that are going to be compared, sorted by their severity."""

    refused: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_alike(scored: Sequence[Scored], *, force: bool, one_reference: bool = False) -> Findings:
    """Return warnings and notes about scores that are going to be compared; `force` turns a refusal into a warning.

    With `one_reference`, all clips must have been compared with the same reference, whatever folder it was in. Raises
    InputError, which names the differences, if the clips were not scored alike.
    """
    if one_reference:
        found = find_differences([replace(entry, reference="") for entry in scored])
        found.refused[:0] = _different_references(scored)
    else:
        found = find_differences(scored)
    if found.refused and not force:
        raise InputError(f"{'; '.join(found.refused)}. `force` compares them all the same")
    return Findings([], [*found.refused, *found.warnings], found.notes)


def find_differences(scored: Sequence[Scored]) -> Findings:
    """Return the differences in how clips were scored.

    Clips of one reference must agree in every effective option. Clips of different references must agree in the options that
    the user asked for: the frame size, and options that follow from the frame size, differ by nature.
    """
    found: dict[tuple[ComparisonRule, str], list[str]] = {}
    first_of: dict[str, tuple[str, ScoringRecord]] = {}
    seen = set()
    for entry in scored:
        if entry.record is None:
            continue
        features = repr(entry.record.features)  # their options are no keys of a set
        key = entry.reference, features, compared_values(entry.record)
        if key in seen:
            continue
        seen.add(key)
        across = entry.reference not in first_of
        name, record = first_of.setdefault(entry.reference, (entry.name, entry.record))
        if across:
            name, record = next(iter(first_of.values()))
        unlike = list(_unlike(record, entry.record, across=across))
        for differs in (ComparisonRule.REFUSED, ComparisonRule.WARNED, ComparisonRule.NOTED):
            text = sentence(difference for difference in unlike if difference.differs is differs)
            if text:
                found.setdefault((differs, text), []).append(f"{name} and {entry.name}")
    said: dict[ComparisonRule, list[str]] = {differs: [] for differs in ComparisonRule}
    for (differs, text), pairs in found.items():
        more = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
        verdict = "were not scored alike" if differs is ComparisonRule.REFUSED else "differ"
        said[differs].append(f"{pairs[0]}{more} {verdict}: {text}")
    unknown = [entry.name for entry in scored if entry.record is None]
    if unknown and len(scored) > 1:
        more = f" and {len(unknown) - _MAX_NAMED} more" if len(unknown) > _MAX_NAMED else ""
        named = f"{', '.join(unknown[:_MAX_NAMED])}{more} {'was' if len(unknown) == 1 else 'were'}"
        said[ComparisonRule.NOTED].append(f"it is unknown how {named} scored, by another tool or an older version")
    return Findings(said[ComparisonRule.REFUSED], said[ComparisonRule.WARNED], said[ComparisonRule.NOTED])


def _different_references(scored: Sequence[Scored]) -> list[str]:
    """Return a sentence if the clips were compared with references of different names. An unknown name differs from none."""
    names = {entry.name: re.split(r"[/\\]", entry.reference)[-1] for entry in scored if entry.reference}
    if len(set(names.values())) < 2:
        return []
    return ["; ".join(f"the reference of {name} is {reference}" for name, reference in names.items())]


def _unlike(first: ScoringRecord, second: ScoringRecord, *, across: bool) -> Iterator[Difference]:
    """Yield the differences between two records; `across` says that their references differ, see `find_differences`."""
    of_second = {(feature.name, feature.plane): feature for feature in second.features}
    for feature in first.features:
        other = of_second.get((feature.name, feature.plane))
        if other is not None:
            for text in _unlike_options(feature, other, _unlike_encodings(first.distorted, second.distorted), across=across):
                yield Difference(ComparisonRule.REFUSED, "features", text)
    yield from differences(first, second, across=across)


def _unlike_encodings(first: ClipFacts, second: ClipFacts) -> set[str]:
    """Return the options that say how a clip was encoded, and differ because the distorted clips do."""
    options = {"enc_width", "enc_height"} if (first.width, first.height) != (second.width, second.height) else set()
    return options | ({"enc_bitdepth"} if first.bits != second.bits else set())


def _unlike_options(first: FeatureFacts, second: FeatureFacts, of_clips: set[str], *, across: bool) -> Iterator[str]:
    """Yield the options of a feature that differ, except those that may; `of_clips` may because the clips differ."""
    name = first.name if first.plane == "y" else f"{first.name} of {first.plane}"
    known = FEATURES[first.name].options if first.name in FEATURES else {}
    for option, value in first.options.items():
        other = second.options.get(option, value)
        adds = option in known and known[option].adds
        encodings = option in of_clips or (option in OF_ENCODING and value and other)
        automatic = across and option in first.automatic and option in second.automatic
        if value != other and not adds and not automatic and not encodings:
            yield f"{name} {option} {as_text(value)} against {as_text(other)}"
    if first.limit_db != second.limit_db and not across:
        limit = values_of(FeatureFacts)["limit_db"]
        yield f"{name} {limit.title} {limit.text(first.limit_db)} against {limit.text(second.limit_db)}"
