"""Command lines: real commands and flags, hostile words, files that are tiny, damaged or not there."""

from __future__ import annotations

import functools
import json
import os

from vkssim.cli.main import COMMANDS, main

from ..support.commands import TINY
from .harness import REFERENCE, SCRATCH, Choices, command, scratch

WORDS = (
    *("tiny.y4m", "tiny.yuv", "empty", "folder", "missing.mp4", "missing/x.json", "manifest.csv", "report.json", "results.csv"),
    *("tiny.y4m", "tiny.y4m", "report.json", "-", "/dev/null", "/dev/full", "/dev/zero", "frame_%04d.png", "*.png", "n" * 300),
    *("0", "1", "-1", "16", "12", "8", "1e9", "99999999999999999999", "9" * 5000, "nan", "inf", "-0.0", "true", "420", "٣"),
    *("float_ssim", "float_ssim=scale=1", "float_ssim=0.5", "float_ms_ssim:p5=2", "x264=", "codec=x264", "=", ":", "=:=", ""),
    *("worst:1", "every:2", "0,1", "1s", "00:00:01.5", "12x11", "12x11+1+1", "auto", "reference", "pts", "yuv", "out.json"),
    *("out.csv", "out.jsonl", "out.parquet", "out.xml", "maps", "a\nb", "a\udcffb", "\udc80", "a\tb", "💥", "--", "bash"),
)
"""Beside the flags of each command, which click knows."""

LONGEST = 24  # words

FUZZED = tuple(name for name in COMMANDS if name != "doctor")
"""All commands but the one that reads no input of strangers, and compiles all kernels."""


@functools.cache
def _flags(name: str) -> tuple[str, ...]:
    found = main.get_command(main.make_context("vkssim", ["devices"]), name)
    assert found is not None
    return tuple(flag for parameter in found.params for flag in (*parameter.opts, *parameter.secondary_opts) if flag[0] == "-")


@functools.cache
def _files() -> None:
    scratch("tiny.y4m", REFERENCE)
    scratch("tiny.yuv", bytes(16 * 18 * 2 + 5))
    scratch("empty", b"")
    scratch("manifest.csv", b"reference,distorted,codec,mos\ntiny.y4m,tiny.y4m,x264,3\nempty,missing,x265,4\n")
    frames = [{"frameNum": number, "metrics": {"float_ssim": 0.9}} for number in range(3)]
    scratch("report.json", json.dumps({"frames": frames, "reference": "tiny.y4m", "distorted": "tiny.y4m"}).encode())
    scratch("results.csv", b"reference,distorted,error,float_ssim_mean\na,b,,0.5\n")
    (SCRATCH / "folder").mkdir(exist_ok=True)


def command_line(data: bytes) -> None:
    """A byte a word: the command, then its flags and words from the list; after a byte of 255 the rest is one word."""
    _files()
    choices = Choices(data)
    name = choices.pick(FUZZED)
    words: list[str] = []
    vocabulary = (*_flags(name), *WORDS)
    while choices.rest() and len(words) < LONGEST:
        if choices.rest()[:1] == b"\xff":
            words.append(choices.text()[1:].replace("/", "∕").replace("\0", ""))  # nothing beyond the folder; no word has zeros
            break
        words.append(choices.pick(vocabulary))
    on_cpu = TINY if "--backend" in _flags(name) else ()
    for file in ("tiny.y4m", "tiny.yuv", "empty", "manifest.csv", "report.json", "results.csv"):
        if not os.path.isfile(SCRATCH / file):  # a command may have written there
            _files.cache_clear()
            _files()
    command(name, *words, *on_cpu)
