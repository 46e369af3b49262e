"""The command `vkssim search`: what it prints, and its exit codes."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from html import unescape
from pathlib import Path

import pytest

from vkssim.cli import main
from vkssim.cli.encoding import EncodeProgress
from vkssim.cli.streams import _guarded, _StandardOutput
from vkssim.report.numbers import told_apart
from vkssim.search.encoders import Encoder, Parameter
from vkssim.utils.progress import ProgressBar

from ..ladder.ladders import encode
from ..support import pictures
from ..support.commands import harmful, run_program, vkssim
from .clips import CUT, FRAMES, LONG, WORDS, source

pytestmark = pytest.mark.usefixtures("shared_device")


def test_the_table_and_the_answer(clip: str, tmp_path: Path) -> None:
    out = tmp_path / "out.mp4"
    result = vkssim("search", clip, *WORDS, "--target", "float_ssim:p5=0.9", "-o", str(out))
    assert result.exit_code == 0, result.stderr
    assert out.exists()
    assert "float_ssim:p5" in result.stdout
    assert re.search(
        r"crf \d+ of libx264 is the cheapest setting with which the whole clip meets float_ssim:p5=0.9: ", result.stdout
    )
    assert f"\nffmpeg -i {clip} -map 0:v:0 -c:v libx264 -preset ultrafast -crf " in result.stdout
    assert result.stderr.count("vkssim: crf ") >= 2
    settings = re.findall(r"│ (\d+) +│ whole ", result.stdout)
    assert len(settings) == len(set(settings)) >= 1, "the encode that is written is not listed beside its trial"
    assert f"wrote {out}" in result.stderr


@pytest.mark.parametrize("words", [("search",), ("ladder", "--heights", "48", "--fixed", "none", "--score", "float_ssim")])
def test_commands_name_the_very_file_and_do_nothing_to_the_terminal(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"\x1b]0;owned\x07 \xff it's.mkv")
    os.link(clip, name)
    script = ("--commands", "rungs.sh", "--least-bitrate", "1") if words[0] == "ladder" else ()
    result = vkssim(words[0], name, *words[1:], *WORDS, "--target", "float_ssim=0.5", *script)
    assert result.exit_code == 0, result.stderr
    assert harmful(result.stdout_bytes.decode()) == harmful(result.stderr_bytes.decode()) == []
    text = Path("rungs.sh").read_text("ascii") if script else result.stdout.splitlines()[-1]
    assert text.startswith("#!/usr/bin/env bash\nset -e\nfor file in $'" if script else "ffmpeg ")
    said = run_program("bash", "-c", f"ffmpeg() {{ printf '%s\\0' \"$@\"; }}\n{text}", check=True)
    assert os.fsencode(name) in said.stdout.split(b"\0")


def test_the_default_encoder_and_target_are_named(tmp_path: Path) -> None:
    help_ = " ".join(vkssim("search", "--help").stdout.split())
    assert "[default: libx264]" in help_
    assert "[default: float_ms_ssim=0.98]" in help_
    path = tmp_path / "clip.mkv"
    encode(path, pictures.clip(3, 192, 192), crf="1", preset="ultrafast")
    result = vkssim("search", str(path), "--enc", "preset=ultrafast", "--least", "20", "--most", "20")
    assert result.exit_code == 0, result.stderr
    assert (
        "crf 20 of libx264 is the cheapest setting with which the whole clip meets float_ms_ssim:mean=0.98: " in result.stdout
    )


def test_an_answer_of_samples_says_how_sure_it_is(tmp_path: Path) -> None:
    path = source(tmp_path / "long.mkv", count=LONG, shots=LONG // CUT)
    words = ("search", path, *WORDS[2:], "--samples", "5", "--target", "float_ssim=0.93")
    result = vkssim(*words)
    assert result.exit_code == 0, result.stderr
    found = re.search(
        r"crf (\d+) of libx264 is the cheapest setting with which the whole clip meets float_ssim:mean=0.93 with a probability"
        r" of 90 % or more \((> 99|9\d) %\): about [\d.]+ MB, [\d,]+ kbit/s. --whole checks it.\n",
        result.stdout,
    )
    assert found
    rows = re.findall(r"│ (\d+) +│ samples │ +[\d.]+ │ +(.*?) % │", result.stdout)
    cheaper = [int(percent) for crf, percent in rows if int(crf) > int(found[1])]
    assert cheaper
    assert max(cheaper) < 90
    missed = vkssim(*words, "--least", "36", "--most", "37")
    assert missed.exit_code == 1
    assert "ffmpeg" not in missed.stdout
    assert (
        "No setting of libx264 meets float_ssim:mean=0.93 with a probability of 90 % or more; crf 36 comes nearest"
        in missed.stdout
    )


def test_json_and_the_setting_alone(clip: str) -> None:
    result = vkssim("search", clip, *WORDS, "--target", "float_ssim=0.93", "--json", "-q")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["choice"]["meets"]
    assert answer["choice"]["trial"] in answer["trials"]
    assert (answer["frames"], len(answer["samples"]), answer["shots"]) == (FRAMES, 1, 2)
    result = vkssim("search", clip, *WORDS, "--target", "float_ssim=0.93", "-q")
    assert (result.stdout, result.stderr) == (f"{answer['choice']['setting']:g}\n", "")


@pytest.mark.parametrize(("target", "meets"), [("0.93", True), ("0.9999", False)])
def test_the_page_opens_with_the_answer(clip: str, tmp_path: Path, target: str, meets: bool) -> None:
    page = tmp_path / "page.html"
    words = ("--target", f"float_ssim={target}", "--least", "24", "--json", "--html", str(page))
    result = vkssim("search", clip, *WORDS, *words)
    assert result.exit_code == (0 if meets else 1)
    assert ("no crf that was tried meets the targets; 24 comes nearest" in result.stderr) != meets
    answer = json.loads(result.stdout)
    choice = answer["choice"]
    text = unescape(page.read_text())
    said = f"crf {choice['setting']:g} meets" if meets else "no crf tried meets"
    assert f"<title>clip.mkv: {said} float_ssim ≥ {target} – vkssim</title>" in text
    opening, _, rest = text.partition("<h2>")
    value = choice["trial"]["values"]["float_ssim:mean"]
    assert f'<dd class="value">{value:.4f}</dd>' in opening
    assert f"target {target} {'met' if meets else 'missed'}, margin {value - float(target):+.4f}" in opening
    assert "libx264 preset=ultrafast" in opening
    assert (choice["command"] in opening) == meets
    assert len(re.findall(r"<title>crf \d+: [\d.,]+ kbit/s", rest)) == len(answer["trials"])
    assert rest.count('<circle class="ring" cx=') == 1
    assert f"All trials ({len(answer['trials'])})" in rest


@pytest.mark.parametrize("words", [("search",), ("ladder", "--heights", "48", "--fixed", "none", "--score", "float_ssim")])
def test_a_table_that_cannot_be_written_costs_no_page(
    clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    page = tmp_path / "page.html"
    target = ("--target", "float_ssim=0.5", "--html", str(page))
    with _full_output(), pytest.raises(SystemExit) as ended:
        main([words[0], clip, *words[1:], *WORDS, *target])
    assert (ended.value.code, "standard output cannot be written" in capsys.readouterr().err) == (2, True)
    assert page.stat().st_size


@contextmanager
def _full_output() -> Iterator[None]:
    """Let standard output be a full disk, guarded as `python -m vkssim` guards it."""
    kept = os.dup(1)
    try:
        with open("/dev/full", "wb") as full:
            os.dup2(full.fileno(), 1)
        with redirect_stdout(_guarded(sys.stdout, _StandardOutput, 1)):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def test_a_page_is_refused_before_anything_is_encoded(clip: str, tmp_path: Path) -> None:
    for words in ((), ("--shots", str(tmp_path / "zones.txt"))):
        result = vkssim("search", clip, *WORDS, "--target", "float_ssim=0.93", *words, "--html", clip)
        assert result.exit_code == 2
        assert "--html" in result.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        ("search",),
        ("search", "--shots", "shots.json"),
        ("ladder", "--heights", "48", "--fixed", "none", "--most-bitrate", "100000"),
    ],
)
def test_a_score_that_rounds_to_its_target_is_told_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """In the line of a trial and in the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Encoder, "parameter", lambda *_: Parameter("crf", (30.0, 31.0)))
    clip = source(tmp_path / "clip.mkv", count=6, shots=1)
    shown = vkssim("search", clip, *WORDS, "--target", "float_ssim=0.9999", "--json").stdout
    score = json.loads(shown)["choice"]["trial"]["values"]["float_ssim:mean"]
    target = math.nextafter(score, 1)
    result = vkssim(words[0], clip, *words[1:], *WORDS, "--target", f"float_ssim={target!r}")
    assert result.exit_code == 1, result.stderr
    assert (result.stdout + result.stderr).count(told_apart(score, target)) >= 2
    assert f"{score:.6f} " not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--target", "float_ssim"), "--target 'float_ssim' is not of the form"),
        (("--target", "float_ssim=0.9", "--sure", "1"), "--sure is 1; it must be 0.5 to 0.999"),
        (("--target", "float_ssim=0.9", "--two-pass"), "--two-pass is for bit rates"),
        (("--target", "float_ssim=0.9", "--bits", "12"), "libx264 encodes 8, 10 bits, not 12: choose one with --bits"),
        (("--target", "float_ssim=0.9", "--enc", "made-up=1"), "--enc: libx264 says"),
    ],
)
def test_errors_name_the_flags(clip: str, words: tuple[str, ...], text: str) -> None:
    result = vkssim("search", clip, *WORDS, *words)
    assert result.exit_code == 2
    assert text in result.stderr


def test_the_bar_says_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bar for the scan, and one for each trial."""
    said: list[str] = []
    monkeypatch.setattr(ProgressBar, "__call__", lambda _self, _done, _total: None)
    monkeypatch.setattr(ProgressBar, "say", lambda _self, text: said.append(text))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    show = EncodeProgress(quiet=False, usual=1)
    for done, total in [(1, None), (2, None), (1, 9), (2, 9)]:
        show(done, total)
    show.close()
    show(1, 9)
    show.close()
    assert said == ["scanning", "trial 1 of about 1", "trial 2"]
