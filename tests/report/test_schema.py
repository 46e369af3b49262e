"""The published schema of reports, held to reports of every kind."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from vkssim.frames.options import Selection
from vkssim.maps.frames import png
from vkssim.report import render
from vkssim.report.schema import REPORT_KEYS, read_attributes, report_schema, schema_text

from ..ladder.ladders import encode, lossless
from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, succeed, vkssim
from ..support.pictures import clip
from .reports import small_record, small_report

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
LUMA = clip(4, 64, 96)
RAW = raw_flags(LUMA)


def _strict(schema: Any) -> Any:
    """The schema, but that no object may have other keys than it names: reports that are written now have none."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(part) for key, part in schema.items()}
    return {"additionalProperties": False, **strict} if "properties" in schema and "type" in schema else strict


VALIDATOR = Draft202012Validator(_strict(report_schema()))


def _check(text: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(text)
    VALIDATOR.validate(report)
    return report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clips")
    lossless(folder / "a.mkv", LUMA)
    encode(folder / "b.mp4", LUMA, crf="35")
    write(folder / "a.y4m", y4m_bytes(LUMA))
    write(folder / "a.yuv", raw_bytes(LUMA))
    for number, picture in enumerate(LUMA):
        png(folder / f"p{number}.png", np.repeat(picture[:, :, None], 3, axis=2))
    return folder


def test_it_is_a_schema_and_the_published_one() -> None:
    Draft202012Validator.check_schema(report_schema())
    assert (DOCS / "report.schema.json").read_text() == schema_text(), "vkssim report --schema > docs/report.schema.json"
    printed = vkssim("report", "--schema")
    assert (printed.exit_code, printed.stdout) == (0, schema_text())


@pytest.mark.parametrize(
    "words",
    [
        ("-r", "a.mkv", "-d", "b.mp4"),
        ("-r", "a.y4m", "-d", "a.y4m", "--planes", "all"),
        ("-r", "a.yuv", "-d", "a.y4m", *RAW),
        ("-r", "p%d.png", "-d", "p*.png"),
        ("-r", "a.mkv", "-d", "b.mp4", "--start", "1", "--end", "0.12s", "--offset", "-1", "--subsample", "2"),
        ("-r", "a.mkv", "-d", "b.mp4", "--crop", "auto", "--scale", "48x32", "--sync", "pts"),
        ("-r", "a.mkv", "-d", "b.mp4", "--feature", "float_ssim=enable_db=true:clip_db=true:enable_lcs=true"),
        ("-r", "a.mkv", "-d", "a.mkv", "--feature", "float_ssim=enable_db=true"),
        ("-r", "a.mkv", "-d", "b.mp4", "--profile", "--precision", "max"),
    ],
    ids=" ".join,
)
def test_reports_of_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.chdir(folder)
    options = TINY[:2] if "--feature" in words else TINY
    result = succeed("score", *words, *options, "--json", "-q")
    assert "scoring" in _check(result.stdout)


def test_reports_of_clips_that_end_early(folder: Path, tmp_path: Path) -> None:
    torn = write(tmp_path / "torn.y4m", y4m_bytes(LUMA)[:-100])
    result = vkssim("score", "-r", str(folder / "a.y4m"), "-d", torn, *TINY, "--json", "-q")
    assert result.exit_code == 2
    report = _check(result.stdout)
    assert (len(report["frames"]), report["scoring"]["distorted"]["frames"]) == (3, None)


def test_reports_without_frames_and_of_older_versions() -> None:
    report = small_report()
    assert "scoring" not in _check(render(report, "json"))
    report.scoring = small_record()
    _check(render(report, "json", "max"))
    report.frames = []
    _check(render(report, "json"))


def test_every_key_is_read_as_it_was_written() -> None:
    """What a key is written from and what it is read to are declared once, and a key that is null is None."""
    report = replace(small_report(), rate=None, notes=["a note"], selection=Selection(3, 4, offset=-1))
    attributes = read_attributes(json.loads(render(report, "json")))
    assert attributes == {place: attrgetter(place)(report) for _, place in REPORT_KEYS.values() if place}
    with pytest.raises(ValueError, match="ten"):
        read_attributes({"width": "ten"})


def test_it_says_what_is_wrong(folder: Path) -> None:
    report = small_report()
    report.scoring = small_record()
    whole = json.loads(render(report, "json"))
    for broken in (
        {**whole, "width": "32"},
        {**whole, "frames": [{"frameNum": 0}]},
        {**whole, "scoring": {**whole["scoring"], "planes": None}},
        {**whole, "scoring": {key: value for key, value in whole["scoring"].items() if key != "features"}},
        {key: value for key, value in whole.items() if key != "pooled_metrics"},
    ):
        assert not VALIDATOR.is_valid(broken)
    assert Draft202012Validator(report_schema()).is_valid({**whole, "from": "a later version"})
