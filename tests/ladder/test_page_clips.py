"""Results of a batch as a page: clips, ladders and Bjøntegaard deltas."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

from vkssim.errors import InputError, OptionError
from vkssim.ladder import page_clips
from vkssim.ladder.page_clips import read_clips
from vkssim.ladder.tables import COLUMNS, Row, render_rows
from vkssim.report import render
from vkssim.report.results import PooledReport, pool
from vkssim.types import Doubles
from vkssim.utils.values import to_short_json

from ..page.pages import embedded
from ..report.reports import small_record, small_report
from ..support.commands import refuse, vkssim

RATES = (100.0, 200.0, 400.0, 800.0)
BETTER = {"old": 0.0, "new": 0.03}


def scores(codec: str, rate: float) -> Doubles:
    return np.linspace(0.9, 1, 5) - 20 / rate + BETTER[codec] * 100 / rate


def row(codec: str, rate: float, reference: str = "ref.mp4") -> Row:
    path = f"{codec}_{rate:g}.mp4"
    pooled = {**pool(scores(codec, rate)), "mean_db": float(-10 * np.log10(1 - scores(codec, rate).mean()))}
    return {
        **dict.fromkeys(COLUMNS),
        "reference": reference,
        "distorted": path,
        "codec": codec,
        "width": 32,
        "height": 24,
        "bitdepth": 8,
        "frames": 5,
        "measured_kbps": rate,
        "backend": "vulkan",
        "device": "Made Up 9000",
        "warnings": "damaged" if rate == 800 else None,
        "scoring": json.dumps(to_short_json(small_record(path))),
        **{f"float_ssim_{pooling}": float(value) for pooling, value in pooled.items()},
        "float_ssim_l_mean": 0.5,
        "float_ssim_l_harmonic_mean": None,
    }


def table(path: Path, rows: Sequence[Row]) -> Path:
    path.write_bytes(render_rows(rows, path.suffix))
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ladders of one reference, and a pair that failed."""
    failed = {
        **row("old", 999.0),
        "codec": "lost",
        "distorted": "gone.mp4",
        "error_type": "InputError",
        "error": "no such file",
    }
    rows = [row(codec, rate) for codec in BETTER for rate in RATES]
    return table(tmp_path_factory.mktemp("results") / "results.parquet", [*rows, failed])


def page_of(path: Path, *words: str, code: int = 0) -> str:
    target = path.parent / "page.html"
    result = vkssim("report", str(path), "-o", str(target), *words)
    assert result.exit_code == code, result.output
    return target.read_text(encoding="utf-8")


@pytest.mark.parametrize("form", [".parquet", ".csv", ".jsonl"])
def test_rows_are_clips_with_pooled_scores(results: Path, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"results{form}"
    table(path, [row(codec, rate) for codec in BETTER for rate in RATES])
    clips, unit, failed = read_clips([path])
    assert (unit, failed) == ("kbit/s", [])
    assert [(clip.ladder, clip.rate) for clip in clips] == [(codec, rate) for codec in BETTER for rate in RATES]
    report = clips[3].report
    assert isinstance(report, PooledReport)
    pooled = report.pooled()
    assert pooled["float_ssim"]["p5"] == pytest.approx(np.percentile(scores("old", 800), 5))
    assert set(pooled["float_ssim_l"]) == {"mean", "harmonic_mean"}
    assert np.isnan(pooled["float_ssim_l"]["harmonic_mean"])
    assert report.similarities == ("float_ssim",)
    assert (report.width, report.frame_count, report.frames, report.warnings) == (32, 5, [], ["damaged"])
    assert report.scoring is not None
    assert report.scoring.distorted.codec == "rawvideo"


def test_the_rate_of_pooled_scores_is_the_references(tmp_path: Path) -> None:
    record = small_record("a.mp4")
    record = replace(record, reference=replace(record.reference, fps=25.0), distorted=replace(record.distorted, fps=50.0))
    path = table(tmp_path / "results.csv", [{**row("old", 100.0), "scoring": json.dumps(to_short_json(record))}])
    assert read_clips([path])[0][0].report.rate == 25.0


def test_a_page_of_parquet_has_what_bd_rate_says(results: Path) -> None:
    text = page_of(results)
    words = ("bd-rate", str(results), "--anchor", "codec=old", "--test", "codec=new", "--score", "float_ssim", "--json")
    (delta,) = json.loads(vkssim(*words).stdout)["deltas"]
    cells = re.findall(r"<tr><th scope=.row.>[^<]*</th><td>([^<]*)</td><td>([^<]*)</td></tr>", text)
    assert (f"{delta['bd_rate']:+.2f} %", f"{delta['bd_score']:+.3f}") in cells
    assert delta["bd_rate"] < 0
    assert f"<title>new needs {-delta['bd_rate']:.1f}\N{NO-BREAK SPACE}% less bit rate than old for the same float_ssim" in text
    ladders = embedded(text)["ladders"]
    assert [ladder["name"] for ladder in ladders] == ["old", "new"]
    assert ladders[1]["rungs"] == [{"clip": 4 + number, "rate": rate} for number, rate in enumerate(RATES)]
    means = [clip["means"][0] for clip in embedded(text)["clips"]]
    assert means == pytest.approx([scores(codec, rate).mean() for codec in BETTER for rate in RATES])
    assert re.search("9 pairs against [^<]*, 1 failed", text)
    assert "<b>gone.mp4</b>: not scored: no such file" in text
    assert "scores of frames, which `vkssim batch --frames FOLDER` stores" in text
    assert '<th scope="col">codec</th>' in text


def test_columns_that_tell_ladders_apart(results: Path) -> None:
    assert embedded(page_of(results, "--ladder", "codec", "--ladder", "device"))["ladders"][0]["name"] == "old Made Up 9000"
    assert len(embedded(page_of(results, "--ladder", "reference"))["ladders"]) == 1
    assert embedded(page_of(results, "--rate", "frames"))["unit"] == "frames"
    for words, message in ((("--ladder", "preset"), "no column 'preset'"), (("--rate", "codec"), "codec is 'old'")):
        refuse(message, "report", str(results), "-o", "-", *words)


def test_labels_besides_the_steps_tell_ladders_apart(tmp_path: Path) -> None:
    """Two presets are two ladders; numbers that each clip has for itself, and names of steps, tell none apart."""
    rows = [
        {**row(codec, rate), "codec": "x264", "preset": codec, "crf": number, "seconds": number + 0.5 * len(codec)}
        for codec in BETTER
        for number, rate in enumerate(RATES)
    ]

    def ladders(*of: Row) -> list[str | None]:
        return [clip.ladder for clip in read_clips([table(tmp_path / "r.csv", of)])[0]]

    assert ladders(*rows) == ["old"] * 4 + ["new"] * 4
    assert ladders(*({**one, "codec": f"{one['crf'] % 2}"} for one in rows))[:2] == ["0 old", "1 old"]
    numbered = [{**one, "preset": len(str(one["preset"])) + (one["preset"] == "new")} for one in rows]
    assert ladders(*numbered) == ["3"] * 4 + ["4"] * 4
    named = [{"name": f"{one['preset']} at {one['crf']}", **one} for one in rows]
    assert ladders(*named) == ladders(*rows), "names of clips are none of ladders"
    stepless = [{**one, "crf": 1} for one in named]
    assert len(set(ladders(*stepless))) == 8, "without steps they may be settings"
    assert "No ladders: " in page_of(table(tmp_path / "r.csv", stepless))
    both = [
        {**one, "preset": "one", "distorted_codec": codec} for one, codec in zip(rows[:4], ("h264", "hevc") * 2, strict=True)
    ]
    for one in both:
        del one["codec"]
    assert ladders(*both) == ["h264", "hevc", "h264", "hevc"]


def test_two_single_clips_are_no_ladder(tmp_path: Path) -> None:
    """Neither of one preset, if no label makes them steps, nor of two; two reports are none either."""
    first, second = row("old", 100.0), row("old", 200.0)
    for rows in ([first, second], [{**first, "crf": 30}, {**row("new", 200.0), "crf": 24}]):
        assert embedded(page_of(table(tmp_path / "r.csv", rows)))["ladders"] == []
    steps = [{**first, "crf": 30}, {**second, "crf": 24}]
    assert len(embedded(page_of(table(tmp_path / "r.csv", steps)))["ladders"]) == 1
    assert len(embedded(page_of(table(tmp_path / "r.csv", [first, second]), "--ladder", "codec"))["ladders"]) == 1


def test_few_rungs_have_a_delta_that_is_marked(tmp_path: Path) -> None:
    text = page_of(table(tmp_path / "r.jsonl", [row(codec, rate) for codec in BETTER for rate in RATES[:3]]))
    assert "old has 3 points and new has 3 points: pchip draws the curves" in unescape(text)
    assert '<span class="note">3\N{NO-BREAK SPACE}clips</span></th>' in text
    assert [len(ladder["rungs"]) for ladder in embedded(text)["ladders"]] == [3, 3]


def test_the_headline_counts_titles_and_notes_name_theirs(tmp_path: Path) -> None:
    """Titles without a delta are counted, and left out of the mean."""
    rows = [{**row(codec, rate, name), "scoring": None} for name in ("a.mp4", "b.mp4") for codec in BETTER for rate in RATES]
    swapped = [{**row(codec, rate, "c.mp4"), "scoring": None} for codec in BETTER for rate in RATES]
    for one in swapped:
        one["codec"] = {"old": "new", "new": "old"}[one["codec"]]
    far = [{**row(codec, rate, "d.mp4"), "scoring": None} for codec in BETTER for rate in RATES]
    for one in far[:4]:
        one["measured_kbps"] *= 1e6
    text = page_of(table(tmp_path / "r.jsonl", [*rows, *swapped, *far]))
    assert "2 titles better, 1 worse, 1 without a BD-rate" in text
    assert re.search(r"<b>d.mp4</b>: new against old: the \w+ .* do not overlap", text)
    deltas = dict(re.findall(r"<tr><th scope=.row.[^>]*>(\w*)[^<]*</th><td[^>]*>([^<]*) %<", text))
    rates = [float(deltas[name]) for name in "abc"]
    assert float(deltas["mean"]) == pytest.approx(sum(rates) / 3, abs=0.01)
    page = embedded(text)
    assert page["references"] == ["a.mp4", "b.mp4", "c.mp4", "d.mp4"]
    colours = {(ladder["name"], ladder["style"]["classes"]) for ladder in page["ladders"]}
    assert len(colours) == 2, "a ladder has one colour"


def test_limits_of_several_clips(results: Path) -> None:
    text = page_of(results, "--fail-under", "float_ssim=0.85", code=1)
    bad = [rate for codec in BETTER for rate in RATES if scores(codec, rate).mean() < 0.85]
    assert 0 < len(bad) < 8
    assert f"{len(bad)} of 8 fail" in text
    assert text.count('<td class="fail">fail</td>') >= len(bad)
    refuse("psnr is not scored", "report", str(results), "-o", "-", "--fail-under", "psnr=1")


@pytest.mark.parametrize("column", ["float_ssim_mean", "float_ssim_harmonic_mean", "float_ssim_p5"])
@pytest.mark.parametrize("value", [2, -5])
def test_a_pooled_similarity_that_cannot_be(tmp_path: Path, column: str, value: float) -> None:
    """A score in dB has no mean in dB beside it."""
    rows = [row("old", 100.0), {**row("old", 200.0), column: value}]
    path = table(tmp_path / "r.csv", rows)
    with pytest.raises(InputError, match=f"old_200.mp4: {column} is {value}; a similarity is within -1 to 1"):
        read_clips([path])
    for one in rows:
        del one["float_ssim_mean_db"]
    pooled = read_clips([table(path, rows)])[0][1].report.pooled()["float_ssim"]
    assert pooled[column.removeprefix("float_ssim_")] == value


def test_frames_come_from_the_reports_of_rows(tmp_path: Path) -> None:
    """They may lie beside the table, wherever it was moved to; without them the pooled scores are shown, and why."""
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "a.json").write_text(render(small_report(), "json"))
    places = ("frames/a.json", "frames/b.json", "s3://key:secret@bucket/a.json")
    rows = [{**row("old", 100.0), "report": place} for place in places]
    there, missing, elsewhere = read_clips([table(tmp_path / "r.jsonl", rows)])[0]
    assert [len(clip.report.frames) for clip in (there, missing)] == [2, 0]
    assert there.source == tmp_path / "frames" / "a.json"
    assert "the scores of its frames are missing" in missing.report.warnings[0]
    assert "the scores of its frames are at s3://…@bucket/a.json" in elsewhere.report.warnings[0]


def test_what_is_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scores.csv").write_text("Frame,float_ssim,\n0,0.9,\n")
    with pytest.raises(InputError, match="not the results of `vkssim batch`"):
        read_clips([tmp_path / "scores.csv"])
    with pytest.raises(InputError, match=r"no clip was scored; .* was not scored: why"):
        read_clips([table(tmp_path / "r.jsonl", [{**row("old", 100.0), "error": "why"}])])
    monkeypatch.setattr(page_clips, "MAX_CLIPS", 1)
    with pytest.raises(OptionError, match="2 clips; a page has 1 at most"):
        read_clips([table(tmp_path / "r.jsonl", [row("old", 100.0), row("old", 200.0)])])
    (tmp_path / "a.json").write_text(render(small_report(), "json"))
    with pytest.raises(OptionError, match="`rate=bitrate` is a column of a table"):
        read_clips([tmp_path / "a.json"], rate="bitrate")
