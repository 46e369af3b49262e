"""Names from outside do nothing to whoever reads them: a terminal, a spreadsheet, a parser."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vkssim.cli import main, options
from vkssim.errors import OutputError
from vkssim.host import devices
from vkssim.host.devices import DeviceInfo
from vkssim.ladder.tables import read_table, render_rows
from vkssim.report import render, write
from vkssim.types import BackendInfo
from vkssim.utils.sanitize import cell, encodable, shell_line, text_of_cell, visible

from ..report.reports import small_report
from ..support.clips import raw_bytes, raw_flags
from ..support.commands import TINY, harmful, python_process, run_program, vkssim, vkssim_process
from ..support.pictures import clip

LUMA = clip(2, 16, 16)
NAME = os.fsdecode(b"\x1b]0;owned\x07\x1b[2J[red]x[b] \xff\xe2\x80\xae\xe2\x80\xa8\xc2\x9b{|}\r\nvkssim: fine.yuv")
"""Sets a title, clears the screen, is markup of rich, no UTF-8, turned round, and says something in a line of its own."""

ANY_TEXT = st.text(st.characters(codec=None))  # lone surrogates too


@given(ANY_TEXT)
def test_visible_text_is_harmless_and_valid_everywhere(text: str) -> None:
    shown = visible(text)
    assert harmful(shown, keeps="") == []
    assert harmful(visible(text, lines=True)) == []
    element = ElementTree.Element("a", b=shown)
    assert ElementTree.fromstring(ElementTree.tostring(element, "unicode")).attrib == {"b": shown}
    assert visible(shown) == shown


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == encodable(text) == text


def test_what_is_hidden_is_spelt() -> None:
    assert visible("a\x1b\r\n\u202eb\udcff") == r"a\x1b\r\n\u202eb\udcff"
    assert visible("a\n\tb\x9b", lines=True) == "a\n\tb\\x9b"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=20).map(lambda raw: os.fsdecode(raw.replace(b"\0", b"0")))))
@example([NAME, "", "it's", "\\033", "\x1b3'\\", "\x077", "\u202e1", "\uffff"])
def test_a_shell_reads_words_back(words: list[str]) -> None:
    line = shell_line(words)
    assert visible(line) == line
    echoed = run_program("bash", "-c", f"printf '%s\\0' + {line}", check=True)
    assert echoed.stdout == b"".join(os.fsencode(word) + b"\0" for word in ("+", *words))


@given(ANY_TEXT)
def test_cells_are_read_back(text: str) -> None:
    assert text_of_cell(cell(text)) == text


def test_formulas_alone_begin_with_an_apostrophe() -> None:
    formulas = ("=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "\nx", " =1", "＝1", "＋A1", "－A1", "＠A", "'=1")
    assert [cell(text) for text in formulas] == [f"'{text}" for text in formulas]
    plain = ["", "a=b", "1", "'", "'quoted'", "it's", "…"]
    assert [cell(text) for text in plain] == plain


@given(st.lists(ANY_TEXT.filter(lambda text: "\0" not in text and text != ""), min_size=1, max_size=4))
def test_tables_of_csv_are_read_back(tmp_path_factory: pytest.TempPathFactory, texts: Sequence[str]) -> None:
    path = tmp_path_factory.mktemp("table") / "table.csv"
    path.write_bytes(render_rows([{"label": text, "number": -1.5} for text in texts], ".csv"))
    assert read_table(path) == [{"label": encodable(text), "number": "-1.5"} for text in texts]


def test_numbers_of_csv_stay_numbers() -> None:
    assert render_rows([{"a": -1.5, "b": -2, "c": "-3"}], ".csv") == b"a,b,c\n-1.5,-2,'-3\n"


@pytest.mark.parametrize("form", [".csv", ".jsonl", ".parquet"])
def test_tables_are_valid_utf8(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"table{form}"
    path.write_bytes(render_rows([{NAME: NAME, "n": 1}], form))
    (row,) = read_table(path)
    assert row[encodable(NAME)] == encodable(NAME)
    assert str(row).encode()


# -- reports ----------------------------------------------------------------------------------------------------------


def _hostile_report(*names: str) -> Any:
    report = replace(small_report(), backend=BackendInfo("vulkan", NAME, f"{NAME}\0\ufffe"), names=names)
    for frame in report.frames:
        object.__setattr__(frame, "metrics", dict.fromkeys(names, 0.5))
    return report


def test_xml_of_a_hostile_driver_is_xml(tmp_path: Path) -> None:
    write(render(_hostile_report("float_ssim"), "xml"), tmp_path / "a.xml")
    root = ElementTree.parse(tmp_path / "a.xml").getroot()
    fyi = root.find("fyi")
    assert fyi is not None
    assert fyi.attrib["device"] == visible(NAME)
    assert fyi.attrib["driver"] == visible(NAME) + r"\x00\ufffe"


@pytest.mark.parametrize("name", ['a="1"><b', "a b", "", "1", "a\n"])
def test_xml_has_no_score_of_a_hostile_name(name: str) -> None:
    with pytest.raises(OutputError, match="no attribute of XML"):
        render(_hostile_report(name), "xml")


def test_subtitles_stay_a_line_a_frame() -> None:
    text = render(_hostile_report("{y:i}a|b\n{0}{1}c"), "sub")
    assert text.splitlines()[0] == r"{0}{1}frame: 0|(y:i)a/b\n(0)(1)c: 0.500000"
    assert len(text.splitlines()) == 2


def test_columns_of_a_report_are_no_formulas() -> None:
    rows = list(csv.reader(io.StringIO(render(_hostile_report("=1+1", "float_ssim"), "csv"))))
    assert rows[0] == ["Frame", "'=1+1", "float_ssim"]
    assert rows[1] == ["0", "0.500000", "0.500000"]


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """Two clips, one of a hostile name."""
    paths = str(tmp_path / "plain.yuv"), str(tmp_path / NAME)
    for path in paths:
        Path(path).write_bytes(raw_bytes(LUMA))
    return paths


def _score(pair: tuple[str, str], *words: str) -> tuple[str, ...]:
    return ("score", "-r", pair[0], "-d", pair[1], *raw_flags(LUMA), *TINY, *words)


def test_score_shows_a_hostile_name_harmlessly(pair: tuple[str, str]) -> None:
    Path(pair[1]).write_bytes(raw_bytes(LUMA)[:-1])  # an error as well as a table
    result = vkssim(*_score(pair, "--allow-partial"))
    assert result.exit_code == 2
    for said in (result.stdout_bytes.decode(), result.stderr_bytes.decode()):
        assert harmful(said) == []
        assert "[red]" in said, "it is no markup"
        assert not [line for line in said.splitlines() if line.startswith("vkssim: fine")]


@pytest.mark.parametrize("words", [("-q", "--json"), ("-q", "--xml"), ("--live",)])
def test_standard_output_is_harmless(pair: tuple[str, str], words: tuple[str, ...]) -> None:
    result = vkssim(*_score(pair, *words))
    assert result.exit_code == 0
    assert harmful(result.stdout_bytes.decode()) == []


def test_a_report_names_the_very_file(pair: tuple[str, str], tmp_path: Path) -> None:
    """Its JSON has to be read again to make a page of it."""
    assert vkssim(*_score(pair, "-q", "-o", str(tmp_path / "a.json"))).exit_code == 0
    assert json.loads((tmp_path / "a.json").read_bytes())["distorted"] == pair[1]
    page = tmp_path / "a.html"
    words = ("report", str(tmp_path / "a.json"), *raw_flags(LUMA), "--backend", "cpu", "-o", str(page))
    assert vkssim(*words).exit_code == 0
    text = page.read_bytes().decode()
    assert "No pictures" not in text
    assert harmful(text) == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_the_characters(pair: tuple[str, str], encoding: str) -> None:
    process = vkssim_process(*_score(pair), environment={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert process.returncode == 0, process.stderr.decode("latin-1")
    assert harmful(process.stdout.decode(encoding)) == []


@pytest.mark.parametrize("words", [(NAME,), ("score", NAME), ("score", "--backend", NAME), ("score", f"--{NAME}")])
def test_usage_errors_are_harmless(words: tuple[str, ...]) -> None:
    result = vkssim(*words)
    assert result.exit_code == 2
    assert harmful(result.stderr_bytes.decode()) == []


def test_tracebacks_are_harmless() -> None:
    code = (
        "import vkssim.cli, vkssim.engine.engine\n"
        "def fail(*_, **__): raise Exception('\\x1b[2J')\n"
        "vkssim.engine.engine.score_pair = fail\n"
        "vkssim.cli.main()"
    )
    process = python_process("-c", code, "score", "-r", "a", "-d", "b", environment={"VKSSIM_TRACEBACK": "1"})
    assert process.returncode == 1
    assert b"Traceback" in process.stderr
    assert b"Exception: \\x1b[2J" in process.stderr


def test_batch_is_harmless(pair: tuple[str, str], tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.jsonl"
    rows = [{"reference": "plain.yuv", "distorted": name, "label": "=1+1"} for name in (NAME, f"{NAME}absent")]
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = vkssim(
        "batch", str(manifest), *raw_flags(LUMA), *TINY, "-o", str(tmp_path / "out.csv"), "--frames", str(tmp_path / "f")
    )
    assert result.exit_code == 1, result.stderr
    assert harmful(result.stdout_bytes.decode()) == []
    assert harmful(result.stderr_bytes.decode()) == []
    table = read_table(tmp_path / "out.csv")
    assert [(row["distorted"], row["label"]) for row in table] == [(encodable(row["distorted"]), "=1+1") for row in rows]
    assert "'=1+1" in (tmp_path / "out.csv").read_text(encoding="utf-8")


def test_names_of_devices_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(instance: Any) -> list[DeviceInfo]:
        return [replace(device, name=NAME, driver=NAME) for device in found(instance)]

    found = devices.list_devices
    monkeypatch.setattr(devices, "list_devices", renamed)
    for words in (("devices",), ("devices", "--json")):
        assert harmful(vkssim(*words).stdout_bytes.decode()) == []
    completions = options.complete_devices(click.Context(main), click.Option(["--device"]), "")
    assert {item.help for item in completions} == {visible(NAME)}
