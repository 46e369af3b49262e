"""All targets. Each has a folder of inputs in corpus/, real ones and those that something was found by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import (
    command_line,
    container,
    devices,
    features,
    journals,
    manifests,
    paths,
    pipeline_cache,
    raw,
    reports,
    tables,
    texts,
    y4m,
)

Target = Callable[[bytes], None]
"""Raises nothing but for a find, whatever it gets."""

TARGETS: dict[str, Target] = {
    module.__name__.rpartition(".")[2]: module.one_input
    for module in (
        y4m,
        raw,
        container,
        paths,
        command_line,
        features,
        texts,
        manifests,
        tables,
        reports,
        journals,
        devices,
        pipeline_cache,
    )
}

CORPUS = Path(__file__).parent / "corpus"


def inputs(target: str) -> list[Path]:
    """The files of a target's corpus."""
    return sorted((CORPUS / target).iterdir())
