"""Test shell completion: the script for each shell, and a bash that really completes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vkssim.cli import main
from vkssim.cli.command import CommandWithExamples
from vkssim.cli.listings import completion
from vkssim.cli.main import COMMANDS
from vkssim.metrics import FEATURES

from ..support.commands import python_process, run_program, succeed, vkssim, vkssim_process

VARIABLE = "_VKSSIM_COMPLETE"


def asked(shell: str, line: str) -> dict[str, str]:
    """The variables by which a shell asks what may follow where this line ends."""
    position = len(line.split()) - (not line.endswith(" "))
    return {VARIABLE: f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(position)}


def completed(shell: str, line: str) -> str:
    """What a shell is told."""
    result = CliRunner().invoke(main, env=asked(shell, line), prog_name="vkssim")  # by which completion goes
    assert result.exit_code == 0
    return result.stdout


def offered(line: str) -> list[str]:
    """What zsh is offered where this line ends."""
    return completed("zsh", line).strip("\n").split("\n")[1::3]  # type, value, help


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vkssim ", list(COMMANDS)),
        ("vkssim sc", ["score"]),
        ("vkssim score --fail", ["--fail-under"]),
        ("vkssim score --feature ", list(FEATURES)),
        ("vkssim score --feature float_m", ["float_ms_ssim"]),
        ("vkssim score --feature float_ssim=s", ["float_ssim=scale="]),
        ("vkssim score --feature float_ssim=scale=1:enable_d", ["float_ssim=scale=1:enable_db="]),
        ("vkssim score --feature psnr=e", []),
        *((f"vkssim {command} --feature float_m", ["float_ms_ssim"]) for command in ("batch", "correlate", "search", "ladder")),
        ("vkssim score --backend ", ["vulkan", "cpu"]),
        ("vkssim score -p 42", ["420", "422"]),
        ("vkssim completion ", ["bash", "zsh", "fish"]),
        ("vkssim score --no_pred", ["--no_prediction"]),
    ],
)
def test_what_is_offered(line: str, expected: list[str]) -> None:
    assert set(expected) <= {value.replace("\\:", ":") for value in offered(line)}
    if not line.endswith("vkssim "):
        assert len(offered(line)) == len(expected)


@pytest.mark.parametrize("flag", ["-r", "--distorted", "-o"])
def test_files_are_the_shells_own(flag: str) -> None:
    assert completed("bash", f"vkssim score {flag} ") == "file,\n"


def test_devices_by_their_index() -> None:
    rows = vkssim("devices").stdout.splitlines()
    first = rows[0].partition(":")[0]
    assert first in offered("vkssim score --device ")


def test_without_vulkan_no_device_is_offered(tmp_path: Path) -> None:
    code = "import sys; sys.argv[0] = 'vkssim'; from vkssim.cli import main; main()"  # the name by which completion goes
    drivers = dict.fromkeys(("VK_ICD_FILENAMES", "VK_DRIVER_FILES"), str(tmp_path))
    process = python_process("-c", code, environment=asked("bash", "vkssim score --device ") | drivers)
    assert (process.stdout, process.stderr) == (b"\n", b"")


@pytest.mark.parametrize(
    ("shell", "sign"), [("bash", "complete -o nosort -F"), ("zsh", "#compdef vkssim"), ("fish", "complete ")]
)
def test_scripts(shell: str, sign: str) -> None:
    result = succeed("completion", shell)
    assert sign in result.stdout
    assert VARIABLE in result.stdout


def test_the_lines_of_the_help_work_on_a_fresh_account(tmp_path: Path) -> None:
    """The line for fish, in any shell, and zsh's script without its completion switched on."""
    assert isinstance(completion, CommandWithExamples)
    line = next(line for line, _ in completion.examples if "fish" in line)
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run_program("bash", "-c", line, environment=environment, check=True)
    assert "complete " in (tmp_path / ".config/fish/completions/vkssim.fish").read_text()
    first, second, *_ = succeed("completion", "zsh").stdout.splitlines()
    assert first == "#compdef vkssim", "as the file of a folder of completions begins"
    assert second.endswith("{ autoload -Uz compinit && compinit }")


def test_bash_completes() -> None:
    """The script as bash runs it, over the line `vkssim score --fail` with the cursor at its end."""
    script = vkssim_process("completion", "bash").stdout.decode()
    line = "COMP_WORDS=(vkssim score --fail); COMP_CWORD=2; _vkssim_completion vkssim; printf '%s\\n' \"${COMPREPLY[@]}\""
    environment = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    found = run_program("bash", "-c", script + "\n" + line, environment=environment, check=True)
    assert found.stdout.decode().split() == ["--fail-under"]
