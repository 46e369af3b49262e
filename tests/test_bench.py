"""Test the benches: a section that fails, ratios, the machine's load, and the scores of `libvmaf` and `decoding`."""

from __future__ import annotations

import json
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import catalogue
import coded
import decoding
import libvmaf
import machine
import measure
import pytest
import spreads
from click.testing import CliRunner
from sections import Sections

import vkssim

bench: Any = SimpleNamespace(**run_path(str(Path(__file__).parents[1] / "scripts" / "bench"), run_name="bench"))

SIZE = 224, 176
SMALL = ("--size", "{}x{}".format(*SIZE), "--frames", "2")


# -- sections ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("shared_device")
def test_libvmaf_beside_vkssim_gives_the_same_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    """The section fails if a score differs by more than one in the sixth decimal."""
    monkeypatch.setattr(libvmaf, "_ROUNDS", 1)
    rows = {row["name"]: row for row in libvmaf.beside(*SIZE, 2, None)}
    assert len(rows) == 18
    for feature in ("float_ms_ssim", "vmaf", "vmaf=model=vmaf_v1.0.16_3d0h"):
        for program in ("vkssim", "libvmaf by FFmpeg"):
            assert rows[f"{program}, {feature}, CPU time"]["value"] > 0
        assert {"value", "text"} & rows[f"libvmaf against vkssim, {feature}, CPU time"].keys()


def test_the_bench_continues_after_a_section_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The feature is unknown, as the section arrays finds out; memory, which does not use it, starts processes.

    They need the package that the bench has, not the part of one in the current folder: a checkout has such a part.
    """
    (tmp_path / "vkssim").mkdir()
    (tmp_path / "vkssim" / "__init__.py").write_text("raise ImportError('the package is not whole')")
    output = tmp_path / "figures.json"
    words = ("--section", "arrays", "--section", "memory", "--feature", "float_nothing", *SMALL, "-o", str(output))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(measure, "_PEAK", measure._PEAK.replace("float_ms_ssim", "float_psnr"))  # which compiles soonest
    run = CliRunner().invoke(bench.main, words)
    said = run.output
    assert run.exit_code == 1, said
    assert "Traceback" not in said
    assert said.count("arrays 224x176, 8 bit failed: ") == 2, said  # when it happens, and at the end
    result = json.loads(output.read_text())
    assert [row["name"] for row in result["figures"]] == [f"peak host memory, {frames} frames" for frames in (32, 128)]
    assert [failure["section"] for failure in result["failures"]] == ["arrays"]
    assert "Traceback" in result["failures"][0]["traceback"]


# -- ratios -----------------------------------------------------------------------------------------------------------


def _figure(*values: float) -> dict[str, Any]:
    return {**spreads.measured(values), "unit": "frames/s"}


def test_a_ratio_of_medians_is_given_if_the_quartiles_lie_apart() -> None:
    assert spreads.measured([5, 1, 2, 4, 3]) == {"value": 3, "range": [2, 4]}
    assert spreads.measured([3, 1, 2]) == {"value": 2, "range": [1, 3]}
    assert spreads.compared(_figure(6, 6.5), _figure(2, 3), "%", 100) == {"value": 250, "unit": "%"}
    for second in ((2.5, 6), (3, 6), (2.2, 2.3), (1, 9)):
        ratio = spreads.compared(_figure(2, 3), _figure(*second), "times")
        assert ratio == {"text": f"spreads overlap: 2 to 3 and {second[0]:g} to {second[1]:g} frames/s"}


# -- the machine ------------------------------------------------------------------------------------------------------


def test_the_share_of_other_programs_is_neither_idle_nor_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    monkeypatch.setattr(machine, "_STAT", stat)
    monkeypatch.setattr("os.sysconf", lambda _name: 100)
    monkeypatch.setattr("os.getloadavg", lambda: (1.5, 0, 0))
    own = iter((10.0, 11.0))
    monkeypatch.setattr(machine, "own_cpu_seconds", lambda: next(own))
    stat.write_text("cpu  1000 0 0 1000 0 0 0 0 0 0\ncpu0 1 2 3 4\n")
    watch = machine.Watch()
    stat.write_text("cpu  1100 20 30 1200 100 0 0 50 0 0\n")  # of 5 seconds 3 are idle, 1 is ours, 0.5 another machine's
    watch.lap("files", "1x1")
    assert watch.rows() == [{"section": "files", "where": "1x1", "load": [1.5, 1.5], "others": pytest.approx(20)}]


# -- catalogue --------------------------------------------------------------------------------------------------------


def test_a_catalogue_is_compared_with_one_pair_and_with_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, Any]] = []

    def score_many(pairs: Any, *, features: object, device: Any) -> Any:
        pairs = list(pairs)
        assert len({path.resolve() for pair in pairs for path in pair}) == 2 * len(pairs), "every clip is a file of its own"
        calls.append((len(pairs), device))
        return vkssim.score_many(pairs, features=["float_psnr"], backend="cpu", decode="cpu")

    monkeypatch.setattr(catalogue, "score_many", score_many)
    rows = list(catalogue.catalogue(coded.CODECS[0], 32, 32, 2, 3, ["a", "b"], rounds=2))
    assert calls == [(1, "a"), *[(1, "a"), (3, "a"), (3, ["a", "b"])] * 2]
    names = ["one pair", "3 pairs", "3 pairs, 2 devices", "3 pairs over one pair", "3 pairs, 2 devices, over one"]
    assert [row["name"] for row in rows[:5]] == names
    assert all(row["value"] > 0 for row in rows[:3])


# -- decoding ---------------------------------------------------------------------------------------------------------


def test_scores_that_differ_fail_the_section_after_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU decodes for `cuda`, with a score that differs in its last bits, and `qsv` fails."""
    on_the_cpu: dict[str, Any] = {"features": ["float_ssim=scale=1"], "backend": "cpu", "decode": "cpu"}

    def score_files(*clips: Path, decode: str, **_: Any) -> Any:
        if decode == "qsv":
            raise OSError(f"{clips[0]} is nothing for it")
        report = vkssim.score_files(*clips, **on_the_cpu)
        report.frames[2].metrics["float_ssim"] += 2**-50 * (decode == "cuda")  # type: ignore[index]
        return report

    monkeypatch.setattr(decoding, "score_files", score_files)
    monkeypatch.setattr(decoding, "score_many", lambda pairs, **_: vkssim.score_many(pairs, **on_the_cpu))
    monkeypatch.setattr(decoding, "offered", lambda: {"cuda", "qsv"})
    monkeypatch.setattr(decoding, "_on_hardware", lambda _kind, _device: [decoding.Streams(1)])
    run = Sections(("decoding",), print, lambda: None)
    run.run("decoding", "", lambda: decoding.decoding(coded.CODECS[0], 32, 32, 4, None, rounds=1, batch=2))
    sentence = "decode=cuda gives other scores than decode=cpu in 1 of 4 frames; frame 2: "
    assert [failure["reason"].split("float")[0] for failure in run.failures] == [f"DifferingScoresError: {sentence}"]
    assert {row["decoder"] for row in run.rows if "value" in row} == {"cpu", "cuda"}
