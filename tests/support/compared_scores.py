"""Score a clip with one decoder and with another, and say how the two runs compare."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vkssim import score_files
from vkssim.errors import VkssimError
from vkssim.utils.facts import to_json

Scores = dict[int, dict[str, float | None]]


@dataclass(frozen=True)
class Outcome:
    """The results of a run: scores of each frame, messages, and the decoder that read the clip."""

    scores: Scores
    complaints: list[str]
    reader: str
    seconds: float

    @property
    def broken_off(self) -> bool:
        """Return whether the run ended with an error, which is then the last complaint."""
        return bool(self.complaints) and self.complaints[-1].startswith("error: ")


@dataclass(frozen=True)
class Difference:
    """The difference between two runs: whether both have scores, the greatest difference, and its first frame."""

    first: int | None
    greatest: float
    frames: tuple[int, int]

    @property
    def equal(self) -> bool:
        """Return whether all scores have the same bits."""
        return self.first is None


def score(reference: Path, clip: Path, *, decode: str, planes: str, backend: str, device: str | None) -> Outcome:
    """Score a clip with float_ssim; an error of vkssim ends the run, and the scores up to it count."""
    start = time.perf_counter()
    chosen: dict[str, Any] = {"decode": decode}
    failure: list[str] = []
    try:
        report: Any = score_files(
            reference, clip, features="float_ssim", planes=planes, backend=backend, device=device, **chosen
        )
    except VkssimError as error:
        report, failure = getattr(error, "report", None), [f"error: {error}"]
    seconds = time.perf_counter() - start
    if report is None:
        return Outcome({}, [_general(text, clip) for text in failure], "", seconds)
    scores = {frame.index: dict(frame.metrics) for frame in report.frames}
    complaints = [_general(text, clip) for text in (*report.warnings, *failure)]
    return Outcome(scores, complaints, _reader(report, clip), seconds)


def differ(one: Scores, other: Scores) -> Difference:
    """Compare scores bit for bit; frames that only one has, and scores that only one has, differ without a number."""
    first, greatest = None, 0.0
    for number in sorted({*one, *other}):
        here, there = one.get(number, {}), other.get(number, {})
        if repr(here) == repr(there):  # repr has every bit of a float, and makes NaN equal to itself
            continue
        first = number if first is None else first
        for name in {*here} & {*there}:
            pair = here[name], there[name]
            if pair[0] is not None and pair[1] is not None:
                greatest = max(greatest, abs(pair[0] - pair[1]))
    return Difference(first, greatest, (len(one), len(other)))


REFUSED = "decoder cannot decode it"
"""Part of the error for a clip that hardware does not decode: it would be wrong to score it otherwise."""


def verdict(cpu: Outcome, other: Outcome, *, damaged: bool, usual: list[str]) -> str | None:
    """Return the problem with the other decoder's run; None if there is none.

    Runs that scored other frames, or of which only one ended with an error, are not equal. A decoder may refuse a clip. A
    damaged clip need not be equal if there is a complaint beyond the `usual` ones, which the sound clip has as well.
    """
    if not other.scores and any(REFUSED in complaint for complaint in other.complaints):
        return None
    difference = differ(cpu.scores, other.scores)
    if difference.equal and cpu.broken_off == other.broken_off:
        return None
    if damaged and set(other.complaints) - set(usual):
        return None
    if not difference.equal:
        return "damage is not noticed" if damaged else "scores differ"
    return "only one of the two fails"


def _general(text: str, clip: Path) -> str:
    return text.replace(str(clip), "CLIP")


def _reader(report: Any, clip: Path) -> str:
    """Return the facts and the notes of the report about the decoder of the distorted clip."""
    facts = to_json(report.scoring)["distorted"]
    told = [str(value) for name, value in facts.items() if name.startswith("decode") and "version" not in name and value]
    return "; ".join([*told, *(_general(note, clip) for note in report.notes if "decod" in note)])
