"""An option and an output form are declared once: what follows from the declaration is there, and the same everywhere."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import vkssim as library
from vkssim import PictureOptions, RawDescription, Scorer, Selection, report
from vkssim.cli import batch, correlate, score
from vkssim.cli import report as report_command
from vkssim.cli.options import raw_options
from vkssim.cli.output import form_of
from vkssim.engine.options import ScoreOptions
from vkssim.engine.pools import WorkerOptions
from vkssim.errors import OptionError, VkssimError
from vkssim.report.schema import report_schema
from vkssim.utils.choices import BACKENDS, ENGINES, FORMS, PLANES, SYNC, SYNCS
from vkssim.utils.values import to_json, values_of

from ..report.reports import small_report
from ..support.commands import python_process

ROOT = Path(__file__).parents[2]
OPTIONS = {"selection": Selection, "pictures": PictureOptions, "raw": RawDescription}
FIELDS = [(key, field) for key, kind in OPTIONS.items() for field in fields(kind)]
SCORING = {"score": score.command, "batch": batch.command, "correlate": correlate.command}


def flag_of(command: click.Command, name: str) -> click.Option:
    (found,) = (parameter for parameter in command.params if parameter.name == name)
    assert isinstance(found, click.Option)
    return found


def test_every_field_is_an_option_with_flag_help_and_title() -> None:
    """Each command that scores has it, with the default of the field; reports and their schema have its title."""
    schema = report_schema()["properties"]["scoring"]["properties"]
    for key, field in FIELDS:
        declared = values_of(OPTIONS[key])[field.name]
        commands = {**SCORING, "report": report_command.command} if key == "raw" else SCORING
        for name, command in commands.items():
            flag = flag_of(command, field.name)
            assert (tuple(flag.opts), flag.default, flag.help) == (declared.flags, field.default, declared.help), name
        assert declared.flag in declared.flags
        assert schema[key]["properties"][field.name]["description"] == declared.title


def test_pages_name_every_flag() -> None:
    manual = (ROOT / "docs" / "vkssim.1").read_text(encoding="utf-8")
    pages = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md"))
    flags = [str(values_of(OPTIONS[key])[field.name].flag) for key, field in FIELDS]
    assert [flag for flag in flags if flag not in pages or flag.replace("-", "\\-") not in manual] == []


@pytest.mark.parametrize(
    ("kind", "name", "minimum"),
    [
        pytest.param(kind, name, entry.minimum, id=f"{kind.__name__}.{name}")
        for kind in (Selection, PictureOptions)
        for name, entry in values_of(kind).items()
        if entry.minimum is not None
    ],
)
def test_a_number_below_its_minimum_is_refused_by_library_and_command_line(kind: Any, name: str, minimum: int) -> None:
    kind(**{name: minimum})
    with pytest.raises(VkssimError, match=f"`{name}` is {minimum - 1}; it must be {minimum} or more"):
        kind(**{name: minimum - 1})
    flag = flag_of(score.command, name)
    with pytest.raises(click.BadParameter):
        flag.type.convert(str(minimum - 1), flag, None)
    assert flag.type.convert(str(minimum), flag, None) == minimum


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Selection, {"subsample": "2"}, "`subsample` is '2'; it must be a whole number"),
        (Selection, {"offset": 0.5}, "`offset` is 0.5; it must be a whole number"),
        (PictureOptions, {"deepen": "false"}, "`deepen` is 'false'; it must be true or false"),
    ],
)
def test_a_value_of_another_type_is_refused(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        kind(**options)


def test_numbers_of_numpy_become_plain() -> None:
    """JSON cannot have any other."""
    given: list[Any] = [np.int64(3), np.True_, np.int16(90)]
    selection, pictures = Selection(count=given[0]), PictureOptions(deepen=given[1], turn_distorted=given[2])
    assert json.loads(json.dumps([to_json(selection), to_json(pictures)])) == [to_json(selection), to_json(pictures)]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_flag_an_ending_and_a_title(form: str) -> None:
    (flag,) = (entry for entry in score.command.params if isinstance(entry, click.Option) and f"--{form}" in entry.opts)
    assert (flag.name, flag.flag_value, flag.help) == ("form", form, f"Output as {FORMS[form]}.")
    assert form_of(f"scores.{form}") == form
    assert f".{form}" in str(flag_of(score.command, "paths").help)
    assert report.render(small_report(), form)
    assert f"`--{form}`" in (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "choices"), [("backend", BACKENDS), ("engine", ENGINES), ("planes", PLANES), ("sync", SYNCS)], ids=str
)
def test_the_command_line_offers_the_choices_of_the_library(name: str, choices: tuple[str, ...]) -> None:
    """And every signature of the library has the same default, the first of them."""
    flag = flag_of(batch.command, name)
    assert isinstance(flag.type, click.Choice)
    assert (tuple(flag.type.choices), flag.default) == (choices, choices[0])
    signatures = [
        inspect.signature(function)
        for function in (library.score_files, library.score_many, library.ssim, Scorer, ScoreOptions, WorkerOptions)
    ]
    defaults = {signature.parameters[name].default for signature in signatures if name in signature.parameters}
    assert defaults == {choices[0]}


def test_choices_that_are_not_offered_are_refused() -> None:
    for refused in (lambda: SYNC.check("time"), lambda: WorkerOptions("slurm"), lambda: PictureOptions(resampler="nearest")):
        with pytest.raises(OptionError, match="it must be"):
            refused()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["score", "--help"], ["completion", "bash"]], ids=" ".join)
def test_help_loads_neither_numpy_nor_pyav(words: list[str]) -> None:
    """The help of the group loads every command."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*{'numpy', 'av', 'vulkan'} & {*sys.modules}, file=sys.stderr));"
        f"from vkssim.cli import main; main({words!r})"
    )
    process = python_process("-c", code)
    assert (process.returncode, process.stderr.decode().strip()) == (0, "")


def test_numpy_starts_no_threads_for_a_command() -> None:
    code = """
import atexit, os, sys
os.environ.pop("OPENBLAS_NUM_THREADS", None)
sys.argv = ["vkssim", "features"]
atexit.register(lambda: print("numpy" in sys.modules, len(os.listdir("/proc/self/task")), file=sys.stderr))
from vkssim.__main__ import run
run()
"""
    process = python_process("-c", code)
    assert (process.returncode, process.stderr.decode().split()) == (0, ["True", "1"])


def test_the_library_gets_numbers_of_choices_of_numbers() -> None:
    found: list[RawDescription] = []
    probe = click.Command("probe", callback=raw_options(lambda raw: found.append(raw)))
    probe.params = probe.callback.__click_params__[::-1]  # type: ignore[union-attr]
    probe.main(["-w", "64", "-b", "10"], standalone_mode=False)
    assert found == [RawDescription(width=64, bits=10)]
