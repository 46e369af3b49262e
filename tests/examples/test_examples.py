"""The examples in small: what they promise comes true, and what they write can be read."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest
import torch
from click.testing import CliRunner
from rich.progress import Progress

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The module that the test's parameter names; it finds its neighbours as when it is run."""
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module(request.param)


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("pictures")


recover_image = pytest.mark.parametrize("example", ["recover_image"], indirect=True)
tune_filter = pytest.mark.parametrize("example", ["tune_filter"], indirect=True)


def test_a_written_picture_is_read_as_it_was(pictures: ModuleType, tmp_path: Path) -> None:
    picture = torch.randint(0, 256, (3, 17, 30), generator=torch.Generator().manual_seed(0)) / 255
    pictures.write_picture(tmp_path / "it.png", picture)
    assert torch.equal(pictures.read_picture(tmp_path / "it.png"), picture)


def test_a_sheet_has_every_picture_in_its_place(pictures: ModuleType) -> None:
    rows = [[torch.full((3, 5, 6), (3 * row + column) / 8) for column in range(3)] for row in range(2)]
    sheet = pictures.sheet(rows)
    assert sheet.shape == (3, 14, 26)
    assert [[sheet[0, y, x].item() * 8 for x in (0, 10, 25)] for y in (0, 13)] == [[0, 1, 2], [3, 4, 5]]
    assert (sheet[:, 5:9] == 1).all()


@recover_image
def test_noise_becomes_the_picture(example: ModuleType, pictures: ModuleType) -> None:
    """In 30 steps the loss falls from 0.69 to 0.053, and PSNR, which nothing was told to raise, rises from 11.3 to 18.0 dB."""
    reference = pictures.read_picture(pictures.CLIP, 161)
    losses, states = example.recover(reference, 30, None, Progress(disable=True))
    assert len(losses) == 31
    assert losses[0] > 0.6
    assert losses[-1] < 0.1 * losses[0]
    assert len(states) == 5
    assert torch.equal(states[0], example.noise(reference))
    assert example.psnr(states[-1], reference) > example.psnr(states[0], reference) + 5


@recover_image
def test_recovering_writes_states_and_curve(example: ModuleType, pictures: ModuleType, tmp_path: Path) -> None:
    result = CliRunner().invoke(example.main, ["--steps", "1", "--size", "161", "-o", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    reference = pictures.read_picture(pictures.CLIP, 161)
    height, width = reference.shape[1:]
    states = pictures.read_picture(tmp_path / "new" / "states.png")
    assert states.shape == (3, 2 * height + 4, 3 * width + 8)
    assert torch.equal(states[:, -height:, -width:], reference)
    assert pictures.read_picture(tmp_path / "new" / "loss.png").shape == (3, 360, 640)


@recover_image
def test_a_picture_too_small_is_an_error_and_leaves_nothing(example: ModuleType, tmp_path: Path) -> None:
    result = CliRunner().invoke(example.main, ["--size", "100", "-o", str(tmp_path / "new")])
    assert result.exit_code == 1
    assert "161x161" in result.output
    assert not (tmp_path / "new").exists()


LEAST_GAINS = (0.05, 0.18, 0.05)
"""In SSIM, after 12 steps on crops of 48x48. Measured: 0.068, 0.232, 0.068."""


@tune_filter
def test_every_picture_gets_a_filter_that_suits_it(example: ModuleType, pictures: ModuleType) -> None:
    poor, clean = example.read_batch(pictures.CLIP, 48)
    untuned, tuned = example.Parameters.defaults(len(poor)), example.tune(poor, clean, 12, None)
    with torch.no_grad():
        before, after = (
            example.ssim(example.restore(poor, parameters), clean, data_range=1.0, size_average=False)
            for parameters in (untuned, tuned)
        )
    assert ((after - before) > torch.tensor(LEAST_GAINS)).all(), (before, after)
    strengths = tuned.strength.tolist()
    assert strengths[1] < untuned.strength[1] < min(strengths[0], strengths[2])  # noise is not sharpened, blur is


@tune_filter
def test_tuning_writes_the_pictures_and_says_what_was_gained(example: ModuleType, pictures: ModuleType, tmp_path: Path) -> None:
    result = CliRunner().invoke(example.main, ["--steps", "1", "--size", "24", "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    written = pictures.read_picture(tmp_path / "filtered.png")
    assert written.shape == (3, 3 * 24 + 8, 4 * 24 + 12)
    _, clean = example.read_batch(pictures.CLIP, 24)
    assert torch.equal(written[:, :24, -24:], clean[0])
    assert all(crop.name in result.output for crop in example.CROPS)


@pytest.mark.parametrize("example", ["recover_image", "tune_filter"], indirect=True)
def test_what_is_no_picture_is_an_error(example: ModuleType, tmp_path: Path) -> None:
    result = CliRunner().invoke(example.main, ["--image", __file__, "-o", str(tmp_path / "new")])
    assert result.exit_code == 1
    assert f"{__file__}: no picture" in result.output


@tune_filter
def test_crops_larger_than_the_picture_are_refused(example: ModuleType) -> None:
    result = CliRunner().invoke(example.main, ["--size", "325"])
    assert result.exit_code == 2
    assert "576x324" in result.output
