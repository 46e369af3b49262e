"""Test what is said of the system, of decoders and of extras."""

from __future__ import annotations

import re
import tomllib
from functools import partial
from pathlib import Path

import pytest

from vkssim.backends.cuda import Capabilities
from vkssim.doctor import decoders, system
from vkssim.doctor.decoders import Engines, ask_engines, decoders_section, send_answers
from vkssim.doctor.findings import Level
from vkssim.doctor.survey import Survey
from vkssim.doctor.system import PURPOSES, Machine, extras_section, missing_packages, system_section

from ..support.machines import machine, write_file

ROOT = Path(__file__).parents[2]
DEVELOPERS = {"bench", "docs", "examples", "fuzz", "test"}


def test_the_versions_of_this_machine() -> None:
    section = system_section(Machine())
    assert all(re.match(r"n?\d", version) for version in section.facts["versions"].values())
    assert f"vkssim {section.facts['versions']['vkssim']}" in section.findings[0].text


def test_kinds_of_machines(tmp_path: Path) -> None:
    assert not machine(tmp_path).is_container
    assert not machine(tmp_path).is_wsl
    assert machine(tmp_path, container="podman").is_container
    assert machine(tmp_path, KUBERNETES_SERVICE_HOST="10.0.0.1").is_container
    write_file(tmp_path / ".dockerenv")
    write_file(tmp_path / "etc/os-release", 'NAME=Ubuntu\nPRETTY_NAME="Ubuntu 24.04 LTS"\n')
    write_file(tmp_path / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    section = system_section(machine(tmp_path))
    assert (section.facts["system"], section.facts["container"], section.facts["wsl"]) == ("Ubuntu 24.04 LTS", True, True)
    assert section.findings[1].text.endswith("in a container, in WSL")


# -- decoders ---------------------------------------------------------------------------------------------------------


def test_the_decoders_of_ffmpeg(monkeypatch: pytest.MonkeyPatch) -> None:
    section = decoders_section(Survey(), None)
    assert section.facts["software"]["AV1"] in ("libdav1d", "libaom-av1")
    assert None not in section.facts["software"].values()
    assert (section.findings[0].level, section.facts["nvdec"]) == (Level.OK, None)
    monkeypatch.setitem(decoders._SOFTWARE, "AV1", ("no_such_decoder",))
    finding = decoders_section(Survey(), None).findings[1]
    assert (finding.level, finding.text) == (Level.WARNING, "FFmpeg was built without decoders of AV1")


def test_what_nvidias_driver_says(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"h264": Capabilities(is_supported=True, engines=7, most_width=4096, most_height=4096), "av1": None}
    monkeypatch.setattr(decoders, "cuda_of", lambda _: None)
    monkeypatch.setattr(decoders, "ask", lambda _cuda, codec, _chroma, _bits: said.get(codec, Capabilities()))
    engines = Engines()
    send_answers(partial(setattr, engines), "6d657361-3232-2e33-2e36-000000000000")
    assert engines.answers["H.264 8 bit"] == "up to 4096x4096, engines: 7"
    assert engines.answers["HEVC 10 bit"] == "no"
    assert engines.answers["AV1 10 bit"] == "the driver does not say"
    finding = decoders_section(Survey(), engines).findings[-1]
    assert "H.264 8 bit: up to 4096x4096, engines: 7; H.264 10 bit" in finding.text


def test_engines_that_cannot_be_asked() -> None:
    assert ask_engines(Survey()) is None, "there is no GPU of NVIDIA's"
    failed = Engines(failure="the package cuda-bindings is not installed: `pip install vkssim[cuda]`")
    assert decoders_section(Survey(), failed).findings[-1].advice == "pip install 'vkssim[cuda]'"


# -- extras -----------------------------------------------------------------------------------------------------------


def test_every_extra_for_users_has_a_purpose() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(PURPOSES) == set(project["optional-dependencies"]) - DEVELOPERS


@pytest.mark.parametrize(
    ("version", "platform", "missing"),
    [
        (None, "linux", ["cuda-bindings>=12.6"]),
        ("12.5.9", "linux", ["cuda-bindings>=12.6"]),
        ("12.6.0", "linux", []),
        ("12.6", "linux", []),
        ("13", "linux", []),
        ("12.10rc1", "linux", []),
        (None, "darwin", []),
    ],
)
def test_packages_that_are_missing_or_too_old(
    version: str | None, platform: str, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert missing_packages(platform)["report"] == [], "those of the tests"
    listed = ['cuda-bindings>=12.6; sys_platform == "linux" and extra == "cuda"', "av>=18", 'pytest>=9; extra == "test"']
    monkeypatch.setattr("importlib.metadata.requires", lambda _: listed)
    monkeypatch.setattr(system, "_installed_version", lambda _: version)
    assert missing_packages(platform)["cuda"] == missing


def test_the_line_for_pip() -> None:
    first, second = extras_section({"report": [], "cuda": ["cuda-bindings>=12.6"]}).findings
    assert (first.level, first.advice) == (Level.OK, None)
    assert (second.level, second.advice) == (Level.NOTE, "pip install 'vkssim[cuda]'")
    assert "cuda-bindings>=12.6" in second.text
