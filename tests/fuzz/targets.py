"""The targets of fuzzing: each takes an input, and raises an error only if it finds a fault. corpus/ has inputs for each."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vkssim import PictureOptions, RawDescription, ScoreReport, Selection, score_files
from vkssim.engine.journal import Journal
from vkssim.frames.info import VideoInfo
from vkssim.frames.transforms import Crop
from vkssim.host.device import Device
from vkssim.host.devices import DEVICE_VARIABLE, DeviceKind, choose_device, list_devices
from vkssim.host.instance import shared_instance
from vkssim.host.pipelines import PipelineBuilder, PipelineCache, unpacked
from vkssim.host.plan import Kernel
from vkssim.ladder.compare import DropLimit, compare_reports
from vkssim.ladder.manifest import read_manifest
from vkssim.ladder.tables import FORMS, as_rows, check_labels, read_table, render_rows
from vkssim.maps.frames import choose_frames
from vkssim.metrics.plane_metrics import FrameMetrics
from vkssim.report import WRITERS, render
from vkssim.report.numbers import NumberFormat
from vkssim.report.reading import read_report
from vkssim.report.results import FrameScores
from vkssim.report.thresholds import check_names, parse_threshold, unmet
from vkssim.shaders import load_module
from vkssim.types import BackendInfo, FrameFormat

from ..frames.reading import open_source
from ..host.made_up import device_info
from ..support.commands import TINY
from .command_line import command_line
from .harness import REFERENCE, SCRATCH, Choices, command, pipe_of, refusals, scratch

CPU: dict[str, Any] = {"features": TINY[3], "backend": "cpu"}
ENDINGS = ["mkv", "mp4", "mov", "webm", "avi", "ts", "png", "jpg", "gif", "tif", "webp", "bmp", "ivf", "h264", "obu", "mpg"]
SIDES = (12, 11, 16, 17, 33, 10, 1, 0, -1, 64, 4096, 32768, 32769, 10**9, 10**30)
NAMES = ("frame_1.png", "frame_2.png", "frame_{a,b}{a,b}.png", "frame_00003.png", "a%d.png", "[.png")
DEVICES = [
    device_info(0, "A GPU 15"),
    device_info(1, "ünïcode ٣", DeviceKind.INTEGRATED, lacks=("everything",)),
    device_info(2, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceKind.CPU),
]
CURVES = ("--anchor", "codec=x264", "--test", "codec=x265")
COMMANDS_OF_TABLES = (
    ("bd-rate", *CURVES),
    ("correlate", "--json"),
    ("bd-rate", *CURVES, "--linear", "--json", "--method", "cubic"),
    ("correlate", "--csv"),
)


def y4m(data: bytes) -> None:
    """Y4M, header and frames: a clip against itself, and from a pipe against another."""
    choices = Choices(data)
    selection = choices.pick([Selection(), Selection(subsample=2), Selection(start=1, count=1), Selection(start="0.04s")])
    sync = choices.pick(["index", "pts"])
    content = b"YUV4MPEG2" + choices.rest()
    path = str(scratch("clip.y4m", content))
    with refusals():
        score_files(path, path, selection=selection, sync=sync, **CPU)
    with refusals(), pipe_of(content) as pipe:
        score_files(str(scratch("reference.y4m", REFERENCE)), pipe, selection=selection, **CPU)


def raw(data: bytes) -> None:
    """Raw YUV of any size, depth and format: a file of any length against itself, and a pipe against the file."""
    choices = Choices(data)
    raw = RawDescription(
        choices.pick(SIDES),
        choices.pick(SIDES),
        choices.pick(["420", "422", "444", "400", "411", "444alpha", "", "nv12"]),
        choices.pick([8, 10, 16, 9, 12, 14, 0, 7, 17, 64]),
    )
    planes = choices.pick(["y", "yuv", "all", "u"])
    selections = ({"count": 8}, {"subsample": 3, "count": 20}, {"skip_reference": 1, "count": 5}, {"offset": -1, "count": 2})
    selection = Selection(**choices.pick(selections))
    pictures = choices.pick([PictureOptions(), PictureOptions(crop="auto"), PictureOptions(scale="15x13")])
    content = choices.rest() * choices.pick([1, 8])
    path = str(scratch("clip.yuv", content))
    how: dict[str, Any] = {"raw": raw, "planes": planes, "selection": selection, **CPU}
    with refusals():
        score_files(path, path, pictures=pictures, **how)
    with refusals(), pipe_of(content) as pipe:
        score_files(path, pipe, **how)


def container(data: bytes) -> None:
    """Containers and pictures, real ones that are damaged: the first frames of a clip against themselves."""
    choices = Choices(data)
    name = f"clip.{choices.pick([*ENDINGS, ''])}"
    sync = choices.pick(["index", "pts"])
    pictures = choices.pick([PictureOptions(), PictureOptions(crop="auto"), PictureOptions(scale="20x14")])
    planes = choices.pick(["y", "all"])
    path = str(scratch(name, choices.rest()))
    with refusals():
        score_files(path, path, selection=Selection(count=6), sync=sync, pictures=pictures, planes=planes, **CPU)
    with refusals(), open_source(path, RawDescription()) as source:
        source.packets()


def paths(data: bytes) -> None:
    """Names of files and of sequences of pictures: open the files that one stands for, in a folder with some files."""
    for name in NAMES:
        if not (SCRATCH / name).exists():
            scratch(name, b"no picture")
    path = Choices(data).text().replace("/", "∕")  # nothing beyond the folder
    with refusals():
        open_source(os.path.join(SCRATCH, path), RawDescription(16, 12, "420", 8)).close()


def features(data: bytes) -> None:
    """Texts that name metrics and their options, one a line."""
    choices = Choices(data)
    frame = FrameFormat.of_bits(*choices.pick([(176, 176), (64, 32), (1, 1), (4096, 4096)]), choices.pick([8, 10, 16]))
    with refusals():
        FrameMetrics(choices.text().split("\n"), (frame,) * choices.pick([1, 3]))


def manifests(data: bytes) -> None:
    """Manifests: read one; write its rows in every form, as of pairs that all failed, and read them back."""
    choices = Choices(data)
    path = scratch(f"manifest.{choices.pick(['csv', 'jsonl'])}", choices.rest())
    with refusals():
        pairs = read_manifest(path)
        check_labels(pairs)
        records = [{"key": "", "error": {"type": "InputError", "message": "no such file"}} for _ in pairs]
        rows = as_rows(pairs, records, [None] * len(pairs))
        for form in FORMS:
            read_table(scratch(f"table{form}", render_rows(rows, form)))


def tables(data: bytes) -> None:
    """Results in CSV, JSON lines and Parquet: Bjøntegaard deltas and correlations of a table."""
    choices = Choices(data)
    path = str(scratch(f"results.{choices.pick(['csv', 'jsonl', 'parquet'])}", choices.rest()))
    name, *words = choices.pick(COMMANDS_OF_TABLES)
    command(name, path, *words)


def reports(data: bytes) -> None:
    """Reports in JSON: read one, write it in every form, compare it and print it."""
    choices = Choices(data)
    shown = choices.pick([False, False, False, True])
    path = scratch("report.json", choices.rest())
    with refusals():
        report = read_report(path)
        for form in WRITERS:
            render(report, form, choices.pick(["6", "max", "0"]))
        limits = [DropLimit.parse(f"float_ssim{text}") for text in ("=0.1", ":p5=0.1")]
        compared = compare_reports(report, report)
        for limit in (*limits, DropLimit.parse("float_ssim=0", frame=True)):
            limit.met(compared)
    if shown:
        command("report", str(path), "-o", "page.html", "--worst", "1", "--backend", "cpu")
        command("compare", str(path), str(path), "--json")


def journals(data: bytes) -> None:
    """Journals of a batch: open one, write on, open it again."""
    path = scratch("journal", data)
    with refusals():
        with Journal(path) as journal:
            known, frames = dict(journal.records), journal.frames
            journal.finish("new", {"key": "new", "error": None})
        with Journal(path) as journal:
            assert (journal.records, journal.frames) == ({**known, "new": {"key": "new", "error": None}}, frames)


def devices(data: bytes) -> None:
    """The selection of a device by a text, as an argument or in the environment."""
    choices = Choices(data)
    devices = choices.pick([DEVICES, DEVICES[1:], []])
    in_environment = choices.pick([False, True])
    text = choices.text()
    with refusals():
        if in_environment:
            with patch.dict(os.environ, {DEVICE_VARIABLE: text.replace("\0", "")}):
                assert choose_device(devices) in devices
        else:
            assert choose_device(devices, text) in devices


NAME = "float_ssim"
REPORT = ScoreReport("a", "b", 64, 48, 8, (NAME,), BackendInfo("cpu", "", ""), [FrameScores(i, {NAME: 0.9}) for i in range(9)])
INFO = VideoInfo("clip", "raw", 64, 48, 8)


def _fail_under(text: str) -> None:
    threshold = parse_threshold(text)
    check_names([threshold], REPORT.names, ())
    unmet([threshold], REPORT)


def _crop(text: str) -> None:
    if PictureOptions(crop=text).crop != "auto":
        str(Crop.parse(text).info(INFO))


READERS: tuple[Callable[[str], object], ...] = (
    _fail_under,
    _crop,
    lambda text: Selection(start=text),
    lambda text: Selection(end=text),
    lambda text: PictureOptions(scale=text),
    lambda text: PictureOptions(resampler=text),
    lambda text: choose_frames(REPORT, text),
    lambda text: NumberFormat.parse(text).text(0.5, ""),
    lambda text: DropLimit.parse(text),
    lambda text: DropLimit.parse(text, frame=True),
)


def texts(data: bytes) -> None:
    """Texts of options other than features: thresholds, positions, rectangles, sizes, selections of frames, precision."""
    choices = Choices(data)
    reader = choices.pick(READERS)
    with refusals():
        reader(choices.text())


PIPELINES = SCRATCH / "pipelines"
KERNEL = Kernel("ingest.staged", ((0, 64), (1, 1)))


@functools.cache
def _device() -> Device:
    return Device(choose_device(list_devices(shared_instance())))


@functools.cache
def _whole() -> tuple[str, bytes]:
    """The name and the content of a file that vkssim wrote itself."""
    with ExitStack() as stack:
        PipelineBuilder(_device(), stack, load_module, PIPELINES).build((KERNEL,))
    (file,) = PIPELINES.iterdir()
    return file.name, file.read_bytes()


def pipeline_cache(data: bytes) -> None:
    """Open a cache on a file of those bytes, or on a real one with those bytes somewhere in it; save it again."""
    name, whole = _whole()
    choices = Choices(data)
    place = choices.pick([None, *range(len(whole))])
    content = choices.rest() if place is None else whole[:place] + choices.rest() + whole[place + len(choices.rest()) :]
    (PIPELINES / name).write_bytes(content)
    assert unpacked(content) in (b"", unpacked(whole)), "only what was written whole reaches a driver"
    with ExitStack() as stack:
        PipelineCache(_device(), stack, PIPELINES).save()


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        *(y4m, raw, container, paths, command_line, features, texts, manifests, tables, reports, journals, devices),
        pipeline_cache,
    )
}

CORPUS = Path(__file__).parent / "corpus"


def inputs(target: str) -> list[Path]:
    """The files of a target's corpus."""
    return sorted((CORPUS / target).iterdir())
