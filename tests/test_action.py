"""Run the steps of the action for other projects as GitHub runs them: by bash, with the inputs in environment variables."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from .support.clips import write, y4m_bytes
from .support.commands import TINY, run_program
from .support.pictures import clip

FOLDER = Path(__file__).parents[1] / "action"
ACTION: dict[str, Any] = yaml.safe_load((FOLDER / "action.yml").read_text(encoding="utf-8"))
INSTALL, SCORE = (step for step in ACTION["runs"]["steps"] if "run" in step)
LUMA = clip(2, 32, 32)
EXPRESSION = re.compile(r"\$\{\{ (?:inputs\.(\w+)|steps\.python\.outputs\.python-path) \}\}")


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """The temporary folder of a runner, with a pair of clips; this environment of Python stands for the installed one."""
    (tmp_path / "vkssim-gate").mkdir()
    (tmp_path / "vkssim-gate" / "venv").symlink_to(sys.prefix)
    write(tmp_path / "reference one.y4m", y4m_bytes(LUMA))
    write(tmp_path / "distorted.y4m", y4m_bytes(np.roll(LUMA, 1, axis=2)))
    return tmp_path


def _run(step: dict[str, Any], runner: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step with these inputs, and the action's defaults for others, in the folder of the runner."""
    values = {name: str(entry.get("default", "")) for name, entry in ACTION["inputs"].items()} | inputs

    def value(found: re.Match[str]) -> str:
        return values[found[1]] if found[1] else "python"

    given = {name: EXPRESSION.sub(value, str(text)) for name, text in step["env"].items()}
    assert "${{" not in "".join(given.values())
    paths = {"GITHUB_ACTION_PATH": str(FOLDER), "GITHUB_OUTPUT": str(runner / "output"), "RUNNER_TEMP": str(runner)}
    paths["GITHUB_STEP_SUMMARY"] = str(runner / "summary.md")
    words = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
    return run_program(*words, environment={**paths, "RUNNER_OS": "Linux", **given}, cwd=runner, text=True)


def _score(runner: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    clips = {"reference": "reference one.y4m", "distorted": "distorted.y4m"}
    return _run(SCORE, runner, **{**clips, "options": f"{' '.join(TINY)} --worst 1", **inputs})


def test_a_clip_that_meets_the_thresholds_passes_and_leaves_page_and_scores(runner: Path) -> None:
    process = _score(runner, thresholds="float_ssim=0.1\nfloat_ssim:min=0.1\n", options=f"{' '.join(TINY)} --end '1'")
    assert process.returncode == 0, process.stderr
    outputs = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
    assert set(outputs) == set(ACTION["outputs"])
    assert len(json.loads(Path(outputs["scores"]).read_text())["frames"]) == 1, "the option in quotes was taken"
    assert "reference one.y4m" in Path(outputs["page"]).read_text()


def test_a_clip_below_a_threshold_fails_and_leaves_its_page(runner: Path) -> None:
    process = _score(runner, thresholds="float_ssim=0.1 float_ssim:min=0.99999")
    assert process.returncode == 1
    assert "the limit is 0.99999 (--fail-under)" in process.stderr
    assert "limit is 0.1" not in process.stderr
    summary = (runner / "summary.md").read_text()
    assert summary.startswith("### vkssim-gate failed\n")
    assert r"the limit is 0.99999 (--fail-under)" in summary
    assert re.search(r"^\| float\\_ssim \| 0\.\d{6} \|", summary, re.MULTILINE)
    assert len(list((runner / "vkssim-gate").glob("*/page.html"))) == 1


def test_every_pair_of_a_manifest_is_judged(runner: Path) -> None:
    """Also beside one that cannot be read; the summary names both, with names that are harmless in Markdown."""
    names = ("reference one.y4m", "distorted.y4m", "gone|<b>.y4m")
    rows = "".join(f"reference one.y4m,{name}\n" for name in names)
    (runner / "ladder.csv").write_text(f"reference,distorted\n{rows}")
    process = _score(
        runner, reference="", distorted="", manifest="ladder.csv", options=" ".join(TINY), thresholds="float_ssim=0.99"
    )
    assert process.returncode == 1, process.stderr
    assert "1 of 2 clips are below their limits (--fail-under): distorted.y4m; 1 of 3 pairs failed" in process.stderr
    outputs = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
    assert Path(outputs["scores"]).read_text().startswith("reference,distorted,")
    assert Path(outputs["page"]).exists()
    summary = (runner / "summary.md").read_text()
    assert "| reference one.y4m | 1.000000 | 1.000000 | 1.000000 |" in summary
    assert r"| gone\|&#60;b&#62;.y4m | – | – | – |" in summary


def test_clips_and_a_manifest_are_not_both_judged(runner: Path) -> None:
    process = _score(runner, manifest="ladder.csv", thresholds="float_ssim=0.1")
    assert (process.returncode, "needs either" in process.stdout) == (2, True)


@pytest.mark.parametrize("thresholds", ["", " \n"])
def test_a_gate_without_a_threshold_is_refused(runner: Path, thresholds: str) -> None:
    process = _score(runner, thresholds=thresholds)
    assert (process.returncode, process.stdout.startswith("::error::vkssim-gate has no thresholds")) == (2, True)


def test_inputs_are_data(runner: Path) -> None:
    """No shell reads what stands in them."""
    process = _score(runner, reference="$(touch hacked)", thresholds="$(touch hacked) *", options="`touch hacked`")
    assert process.returncode == 2
    assert not (runner / "hacked").exists()


STAND_IN = """#!/bin/bash
echo "$(basename "$0") $*" >>"$RUNNER_TEMP/calls"
case "$(basename "$0") $*" in
    python*venv*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/vkssim" ;;
    sudo*) "$@" ;;
    apt-get*install*) touch "$RUNNER_TEMP/driver" ;;
    vkssim*) test -e "$RUNNER_TEMP/driver" ;;
esac
"""


@pytest.mark.parametrize("driver", [True, False])
def test_a_driver_is_installed_if_vkssim_finds_none(tmp_path: Path, driver: bool) -> None:
    """Stand-ins note their calls, and make an environment with themselves in it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("python", "sudo", "apt-get"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    if driver:
        (tmp_path / "driver").touch()
    step = {**INSTALL, "env": {**INSTALL["env"], "PATH": f"{programs}:{os.environ['PATH']}"}}
    process = _run(step, tmp_path, package="vkssim[report]==0.1.0")
    assert process.returncode == 0, process.stderr
    calls = [line for line in (tmp_path / "calls").read_text().splitlines() if not line.startswith("sudo")]
    installed = [
        f"python -m venv {tmp_path}/vkssim-gate/venv",
        "python -m pip install --quiet --disable-pip-version-check vkssim[report]==0.1.0",
        "vkssim devices",
    ]
    apt = [
        "apt-get update -qq",
        "apt-get install -qq -y --no-install-recommends libvulkan1 mesa-vulkan-drivers",
        "vkssim devices",
    ]
    assert calls == installed + ([] if driver else apt)


def test_the_documentation_uses_inputs_that_exist() -> None:
    page = (FOLDER.parent / "docs" / "ci.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (step,) = (step for step in yaml.safe_load(block)["jobs"]["ms-ssim"]["steps"] if "/action@" in step.get("uses", ""))
    assert set(step["with"]) <= set(ACTION["inputs"])
    rows = {name for row in re.findall(r"^\| (`.+?`) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert set(ACTION["inputs"]) <= rows
