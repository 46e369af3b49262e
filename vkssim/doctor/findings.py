"""Hold a diagnosis as plain values: sections of findings, each with what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """Name how serious a finding is."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """Describe one thing that was found. `advice` says what to do; it is None where nothing needs to be done."""

    level: Level
    text: str
    advice: str | None = None

    def plain(self) -> dict[str, str | None]:
        """Return the finding as values of JSON."""
        return {"level": self.level.value, "text": self.text, "advice": self.advice}


@dataclass(frozen=True)
class Section:
    """Hold the findings about one thing. `key` names the section in JSON; `facts` are values of JSON for bug reports."""

    key: str
    title: str
    findings: Sequence[Finding]
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """Hold all sections. `scores` is True where the device that vkssim chooses scores."""

    scores: bool
    summary: Finding
    sections: Sequence[Section]

    def plain(self) -> dict[str, Any]:
        """Return the diagnosis as values of JSON."""
        sections = {
            section.key: {"findings": [finding.plain() for finding in section.findings], **section.facts}
            for section in self.sections
        }
        return {"scores": self.scores, "summary": self.summary.plain(), **sections}
