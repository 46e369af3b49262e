"""A diagnosis as plain values: sections of findings, each with advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """The seriousness of a finding."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """A sentence about the machine. `advice` says what to do; it is None if nothing needs to be done."""

    level: Level
    text: str
    advice: str | None = None


@dataclass(frozen=True)
class DiagnosisSection:
    """The findings about one subject. `key` names the section in JSON; `facts` are values of JSON for bug reports."""

    key: str
    title: str
    findings: Sequence[Finding]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """All sections. `scores` is True if the device that vkssim chooses scores."""

    scores: bool
    summary: Finding
    sections: Sequence[DiagnosisSection]

    def plain(self) -> dict[str, Any]:
        """Return the diagnosis as values of JSON."""
        sections = {part.key: {"findings": list(map(asdict, part.findings)), **part.facts} for part in self.sections}
        return {"scores": self.scores, "summary": asdict(self.summary), **sections}
