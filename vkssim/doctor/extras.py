"""Report which extras of the package are installed, and how to install the missing ones."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata

from .findings import DiagnosisSection, Finding, Level

PURPOSES = {
    "report": "HTML pages, maps, Parquet, bd-rate and correlate",
    "remote": "clips and results at s3://, gs:// and https://",
    "ray": "a cluster",
    "cuda": "frames that an NVIDIA GPU decodes stay there",
    "torch": "losses of PyTorch's tensors",
}
"""The extras for users, and what each is for. All other extras are for developers."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_LEAST = re.compile(r">=\s*(\d+(?:\.\d+)*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")
_PLATFORM = re.compile(r"""sys_platform\s*==\s*['"](\w+)['"]""")


def requirements() -> list[str]:
    """Return the requirements of the installed package, as its metadata lists them; none for a package without metadata."""
    try:
        return metadata.requires("vkssim") or []
    except metadata.PackageNotFoundError:
        return []


def installed_version(package: str) -> str | None:
    """Return the version of an installed package, None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def missing_packages(
    listed: Iterable[str], version_of: Callable[[str], str | None] = installed_version, platform: str = sys.platform
) -> dict[str, list[str]]:
    """Return the missing packages of each extra for users, such as ``"jinja2>=3.1"``; packages too old count as missing."""
    missing: dict[str, list[str]] = {extra: [] for extra in PURPOSES}
    for requirement in listed:
        extra, name = _EXTRA.search(requirement), _NAME.match(requirement)
        other = _PLATFORM.search(requirement)
        if extra is None or extra[1] not in PURPOSES or name is None or (other is not None and other[1] != platform):
            continue
        least = _LEAST.search(requirement.partition(";")[0])
        version = version_of(name[0])
        if version is None or (least is not None and _numbers(version) < _numbers(least[1])):
            missing[extra[1]].append(requirement.partition(";")[0].strip())
    return missing


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version without zeros at their end, so that 3.0 is 3."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(text) for text in found[0].split(".")] if found else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def extras_section(missing: Mapping[str, list[str]]) -> DiagnosisSection:
    """Return which extras are installed."""
    findings = []
    for extra, packages in missing.items():
        text = f"{extra} ({PURPOSES[extra]})"
        if packages:
            findings.append(Finding(Level.NOTE, f"{text} lacks {', '.join(packages)}", f"pip install 'vkssim[{extra}]'"))
        else:
            findings.append(Finding(Level.OK, f"{text} is installed"))
    return DiagnosisSection(
        "extras", "Extras", findings, {"missing": {extra: list(packages) for extra, packages in missing.items()}}
    )
