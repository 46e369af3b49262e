"""`batch --plan`: what is expected is held to what is read and scored then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vkssim.engine.options import ScoreOptions
from vkssim.engine.ranges import PIXELS_A_SECOND
from vkssim.frames.options import Selection
from vkssim.ladder import batch
from vkssim.ladder.batch import Forecast, forecast
from vkssim.ladder.manifest import read_manifest

from ..support.clips import raw_bytes, raw_flags, write
from ..support.commands import succeed
from ..support.pictures import clip
from .ladders import ladder, manifest

OPTIONS = ScoreOptions(("float_ssim",))
FRAMES, HEIGHT, WIDTH = 6, 64, 96


def _forecast(folder: Path, rows: list[dict[str, str]], options: ScoreOptions = OPTIONS, workers: int = 1) -> Forecast:
    pairs = read_manifest(Path(manifest(folder / "manifest.csv", rows)))
    return forecast(pairs, options, ["software"] * workers, 2, 15.0)


@pytest.fixture
def raw(tmp_path: Path) -> list[dict[str, str]]:
    (tmp_path / "clip.yuv").write_bytes(raw_bytes(clip(FRAMES, HEIGHT, WIDTH)))
    described = {"width": str(WIDTH), "height": str(HEIGHT), "pixel_format": "420", "bitdepth": "8"}
    return [{"reference": "clip.yuv", "distorted": "clip.yuv", **described}]


def test_raw_clips_cost_the_planes_that_are_scored(tmp_path: Path, raw: list[dict[str, str]]) -> None:
    expected = _forecast(tmp_path, raw)
    assert (expected.pairs, expected.opened, expected.frames, expected.tasks) == (1, 1, FRAMES, 1)
    assert expected.bytes == 2 * FRAMES * WIDTH * HEIGHT
    assert expected.seconds == pytest.approx(FRAMES * WIDTH * HEIGHT / PIXELS_A_SECOND["software"])
    colours = ScoreOptions(("float_ssim",), "yuv")
    assert _forecast(tmp_path, raw, colours).bytes == 2 * FRAMES * WIDTH * HEIGHT * 3 // 2


def test_frames_that_are_left_out_cost_nothing(tmp_path: Path, raw: list[dict[str, str]]) -> None:
    every_other = ScoreOptions(("float_ssim",), selection=Selection(subsample=2))
    assert _forecast(tmp_path, raw, every_other).frames == FRAMES // 2
    assert _forecast(tmp_path, [{**row, "offset": "2"} for row in raw]).frames == FRAMES - 2, "the options of a row count"


def test_containers_cost_their_files_and_their_decoding(tmp_path: Path) -> None:
    rows = ladder(tmp_path, crfs=(20,))
    expected = _forecast(tmp_path, rows)
    assert expected.frames == FRAMES
    assert expected.bytes == sum((tmp_path / rows[0][name]).stat().st_size for name in ("reference", "distorted"))
    assert expected.seconds > FRAMES * WIDTH * HEIGHT / PIXELS_A_SECOND["software"]


def test_what_cannot_be_opened_is_said(tmp_path: Path, raw: list[dict[str, str]]) -> None:
    expected = _forecast(tmp_path, [*raw, {**raw[0], "distorted": "nothing.yuv"}], workers=2)
    assert (expected.pairs, expected.frames) == (2, FRAMES)
    assert expected.elapsed == pytest.approx(expected.seconds / 2)
    (failure,) = expected.failed
    assert "nothing.yuv cannot be read" in failure


def test_of_many_pairs_some_are_looked_at(tmp_path: Path, raw: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_OPENED", 4)
    expected = _forecast(tmp_path, raw * 10)
    assert (expected.pairs, expected.opened, expected.frames, expected.tasks) == (10, 4, 10 * FRAMES, 10)


def test_a_plan_runs_nothing(tmp_path: Path, raw: list[dict[str, str]]) -> None:
    path = manifest(tmp_path / "manifest.csv", raw)
    luma = clip(FRAMES, HEIGHT, WIDTH)
    result = succeed("batch", path, *raw_flags(luma), "-o", str(tmp_path / "scores.csv"), "--plan")
    assert re.search(rf"frames +│ +{FRAMES} ", result.output)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clip.yuv", "manifest.csv"]


def test_a_plan_names_a_few_of_the_pairs_that_cannot_be_scored(tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", b"".join(b'{"reference": "a%d.y4m", "distorted": "b.y4m"}\n' % row for row in range(20)))
    result = succeed("batch", path, "-o", str(tmp_path / "scores.csv"), "--plan", "--backend", "cpu")
    assert result.stderr.count("cannot be read: No such file") == 8
    assert "warning: 12 more of these pairs cannot be scored" in result.stderr
