"""Test the record of how a report was scored: it does not depend on the device, and suffices to score again."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim import PictureOptions, RawDescription, ScoreReport, Selection, __version__, score_files
from vkssim.backends.cpu import CpuBackend
from vkssim.engine.options import Clips, ScoreOptions
from vkssim.engine.run import score_range
from vkssim.frames.info import ClipFacts
from vkssim.metrics import FEATURES
from vkssim.report import render
from vkssim.report.record import FeatureFacts, ScoringRecord

from ..engine.in_ranges import same_in_ranges, small_ranges
from ..frames.reading import open_source
from ..ladder.ladders import encode, lossless, manifest
from ..support.children import in_child
from ..support.clips import raw_bytes, raw_flags, write, y4m_bytes
from ..support.commands import TINY, succeed, vkssim
from ..support.pictures import clip

FEATURE = "float_ssim=scale=1"
FRAMES = 12
LUMA = clip(FRAMES, 64, 96)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of every kind: ref.mkv, dis.mp4 (with key frames on the way), short.mp4, ref.y4m, ref.yuv, bars.mkv."""
    folder = tmp_path_factory.mktemp("clips")
    lossless(folder / "ref.mkv", LUMA)
    encode(folder / "dis.mp4", LUMA, crf="30", g="3")
    encode(folder / "short.mp4", LUMA[:7], crf="30")
    write(folder / "ref.y4m", y4m_bytes(LUMA))
    write(folder / "ref.yuv", raw_bytes(LUMA))
    barred = LUMA.copy()
    barred[:, :10], barred[:, -10:] = 16, 16
    lossless(folder / "bars.mkv", barred)
    return folder


def scored(folder: Path, reference: str = "ref.mkv", distorted: str = "dis.mp4", **options: Any) -> ScoreReport:
    return score_files(folder / reference, folder / distorted, **{"features": FEATURE, "backend": "cpu", **options})


def record_of(report: ScoreReport) -> ScoringRecord:
    assert report.scoring is not None
    return report.scoring


# -- features ---------------------------------------------------------------------------------------------------------


def features_of(folder: Path, *features: str, **options: Any) -> dict[tuple[str, str], FeatureFacts]:
    record = record_of(scored(folder, features=features, **options))
    return {(feature.name, feature.plane): feature for feature in record.features}


def test_all_options_of_a_feature_as_they_were_used(folder: Path) -> None:
    (feature,) = features_of(folder, "float_ssim").values()
    defaults = {name: option.default for name, option in FEATURES["float_ssim"].options.items()}
    assert feature.options == {**defaults, "scale": 1}
    assert feature.automatic == ("scale",)
    assert feature.limit_db is None


def test_what_was_asked_for_is_not_automatic(folder: Path) -> None:
    """The limit of decibels goes by size and depth."""
    (feature,) = features_of(folder, "float_ssim=precision=fast:scale=2:enable_db=true:clip_db=true").values()
    assert (feature.options["precision"], feature.options["scale"], feature.automatic) == ("fast", 2, ())
    assert feature.limit_db == np.ceil(10 * np.log10(255**2 * 2 * 96 * 64))


def test_each_plane_has_its_own(tmp_path: Path) -> None:
    """Chroma of half the size is downscaled by half the factor."""
    luma = clip(1, 400, 520)
    path = write(tmp_path / "a.y4m", y4m_bytes(luma))
    report = score_files(path, path, features="float_ssim", planes="yuv", backend="cpu")
    used = {feature.plane: feature.options for feature in record_of(report).features}
    assert [used[plane]["scale"] for plane in ("y", "cb", "cr")] == [2, 1, 1]
    assert (record_of(report).planes, record_of(report).chroma) == ("yuv", "420")


# -- pictures and clips -----------------------------------------------------------------------------------------------


def test_a_crop_as_it_was_found(folder: Path) -> None:
    record = record_of(scored(folder, "bars.mkv", "bars.mkv", pictures=PictureOptions("auto")))
    assert (record.pictures.crop, record.cropped_to, record.width, record.height) == ("auto", "96x44+0+10", 96, 44)
    assert (record.reference.width, record.reference.height) == (96, 64), "the clip is what it was"
    assert record_of(scored(folder, pictures=PictureOptions("auto"))).cropped_to is None


def test_what_was_scaled_and_by_what(folder: Path, tmp_path: Path) -> None:
    encode(tmp_path / "half.mp4", LUMA[:, ::2, ::2], crf="30")
    pictures = PictureOptions(scale="reference", resampler="lanczos")
    record = record_of(scored(folder, distorted=str(tmp_path / "half.mp4"), pictures=pictures))
    assert (record.width, record.height) == (96, 64)
    assert (record.reference.resampler, record.distorted.resampler) == (None, "lanczos")
    assert (record.distorted.width, record.distorted.height) == (48, 32)


def test_facts_of_a_container(folder: Path) -> None:
    record = record_of(scored(folder))
    assert replace(record.distorted, kbps=None) == ClipFacts(
        *(str(folder / "dis.mp4"), "mov,mp4,m4a,3gp,3g2,mj2"),
        stream=0,
        codec="h264",
        decoder="h264",
        width=96,
        height=64,
        bits=8,
        chroma="420",
        field_order="progressive",
        fps=25.0,
        frames=FRAMES,
        duration=FRAMES / 25,
        file_bytes=(folder / "dis.mp4").stat().st_size,
        decoder_version=f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}",
    )
    assert record.version == __version__


@pytest.mark.parametrize(("name", "kind", "fps", "duration"), [("ref.y4m", "Y4M", 30.0, 0.4), ("ref.yuv", "raw", None, None)])
def test_facts_of_what_is_not_compressed(folder: Path, name: str, kind: str, fps: float | None, duration: float | None) -> None:
    raw = RawDescription(96, 64, "420", 8)
    record = record_of(scored(folder, name, name, raw=raw))
    facts = record.reference
    assert (facts.container, facts.codec, facts.decoder, facts.decoder_version) == (kind, "rawvideo", kind, None)
    assert (facts.fps, facts.frames, facts.duration, facts.kbps) == (fps, FRAMES, duration, None)
    assert facts.file_bytes == (folder / name).stat().st_size
    assert record.raw == raw


# -- the bit rate -----------------------------------------------------------------------------------------------------


def _packets(path: Path) -> list[tuple[int, float, float]]:
    """Bytes, presentation time and duration of each packet of the video, by PyAV alone."""
    with av.open(str(path)) as container:
        (stream,) = container.streams.video
        found = [packet for packet in container.demux(stream) if packet.size]
        base = stream.time_base
        assert base is not None
        packets = []
        for packet in found:
            assert packet.pts is not None
            packets.append((packet.size, float(packet.pts * base), float((packet.duration or 0) * base)))
        return packets


def _kbps(path: Path) -> float:
    packets = _packets(path)
    last = max(packets, key=lambda packet: packet[1])
    return sum(size for size, _, _ in packets) * 8 / 1000 / (last[1] + last[2] - min(time for _, time, _ in packets))


@pytest.fixture(scope="module", params=["mp4", "mkv"])
def with_audio(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A clip with sound that is five times as long as its video."""
    path = tmp_path_factory.mktemp("audio") / f"clip.{request.param}"
    _encode_with_audio(path)
    return path


@in_child
def _encode_with_audio(path: Path) -> None:
    with av.open(str(path), "w") as container:
        video: Any = container.add_stream("libx264", rate=25, options={"crf": "20"})
        audio: Any = container.add_stream("aac", rate=8000, layout="mono")
        video.height, video.width = LUMA.shape[1:]
        video.pix_fmt = "yuv420p"
        grey = np.full((32, 96), 128, np.uint8)
        for picture in LUMA:
            container.mux(video.encode(av.VideoFrame.from_ndarray(np.concatenate([picture, grey]), format="yuv420p")))
        container.mux(video.encode())
        samples = np.random.default_rng(0).normal(0, 0.1, (1, 8000 * 5 * FRAMES // 25)).astype(np.float32)
        sound = av.AudioFrame.from_ndarray(samples, format="fltp", layout="mono")
        sound.sample_rate, sound.time_base, sound.pts = 8000, Fraction(1, 8000), 0
        container.mux(audio.encode(sound))
        container.mux(audio.encode())


def test_the_bit_rate_is_that_of_the_video_alone(with_audio: Path) -> None:
    """Neither the sound's bytes nor its length count: FFmpeg's figure for the file differs."""
    facts = record_of(scored(with_audio.parent, with_audio.name, with_audio.name)).distorted
    assert facts.kbps == pytest.approx(_kbps(with_audio), abs=1e-3)
    assert facts.duration == pytest.approx(FRAMES / 25, abs=2e-3)  # Matroska's ticks are milliseconds
    with av.open(str(with_audio)) as container:
        assert facts.kbps is not None
        assert container.bit_rate < facts.kbps * 1000 / 2


@pytest.mark.parametrize("container", ["mp4", "mkv", "avi", "ts", "264"])
@pytest.mark.parametrize("options", [{}, {"bf": "0"}], ids=["B", "no B"])
def test_a_second_reading_of_the_packets_gives_the_same(tmp_path: Path, container: str, options: dict[str, str]) -> None:
    path = str(tmp_path / f"clip.{container}")
    encode(Path(path), LUMA, crf="30", **options)
    with open_source(path, RawDescription()) as source:
        anew = source.packets()
        target = source.info.new_planes(1)
        assert source.read(range(99), [target] * 99) == FRAMES
        assert source.packets() == anew
        assert anew is not None
        with av.open(path) as file:
            assert anew.bytes == sum(packet.size for packet in file.demux(video=0))
        assert anew.seconds == pytest.approx(FRAMES / 25, abs=2e-3)


@pytest.mark.parametrize("selection", [Selection(start=2), Selection(end=9), Selection(count=9), Selection(count=99)])
def test_a_part_of_a_clip_has_no_bit_rate(folder: Path, selection: Selection) -> None:
    """The bit rate of the whole clip says nothing about a part. The facts that the container states stay."""
    record = record_of(scored(folder, selection=selection))
    assert (record.reference.kbps, record.distorted.kbps) == (None, None)
    assert (record.distorted.frames, record.distorted.duration) == (FRAMES, FRAMES / 25)
    assert (record.reference.frames, record.reference.duration) == (None, None)


def test_clips_of_different_length_have_theirs_to_the_end(folder: Path) -> None:
    for names in (("ref.mkv", "short.mp4"), ("short.mp4", "ref.mkv")):
        record = record_of(scored(folder, *names))
        for facts in (record.reference, record.distorted):
            assert facts.kbps == pytest.approx(_kbps(Path(facts.path)), abs=1e-3)
        longer = record.reference if names[0] == "ref.mkv" else record.distorted
        assert longer.duration == pytest.approx(FRAMES / 25)
        assert longer.frames is None, "whether its end was met depends on how far it was read ahead"


# -- the same whatever scored it --------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [("ref.mkv", "dis.mp4"), ("dis.mp4", "short.mp4"), ("ref.y4m", "ref.y4m")])
@pytest.mark.parametrize("selection", [Selection(), Selection(subsample=2), Selection(start=2)], ids=["all", "every", "start"])
def test_parts_say_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str], selection: Selection
) -> None:
    small_ranges(monkeypatch)
    assert same_in_ranges(folder / names[0], folder / names[1], selection=selection) > 0


def test_a_batch_says_the_same(folder: Path, tmp_path: Path) -> None:
    """Also of a reference that is decoded for several clips, of which one ends early."""
    names = ["dis.mp4", "short.mp4", "bars.mkv"]
    rows = [{"reference": str(folder / "ref.mkv"), "distorted": str(folder / name), "codec": "a label"} for name in names]
    words = ("batch", manifest(tmp_path / "ladder.csv", rows), "-o", str(tmp_path / "out.jsonl"), "--frames", str(tmp_path))
    succeed(*words, *TINY, "-q")
    for line, name in zip((tmp_path / "out.jsonl").read_text().splitlines(), names, strict=True):
        row, alone = json.loads(line), scored(folder, distorted=name)
        assert Path(row["report"]).read_text() == render(alone, "json", "max")
        facts = record_of(alone).distorted
        assert row["measured_kbps"] == facts.kbps
        for column in ("codec", "width", "height", "fps", "duration", "file_bytes"):
            assert row[f"distorted_{column}"] == getattr(facts, column)
        assert row["codec"] == "a label"


@pytest.mark.parametrize(
    "words",
    [
        ("--feature", "float_psnr"),
        (*TINY[:2], "--feature", "float_ssim=window=uniform8:scale=2:enable_db=true", "--planes", "yuv"),
        (*TINY, "--frame_skip_ref", "1", "--frame_skip_dist", "2", "--subsample", "2", "--offset", "-1", "--end", "9"),
        (*TINY, "--frame_cnt", "3", "--start", "0.08s", "--sync", "pts"),
        (*TINY, "--crop", "64x48+8+8", "--scale", "80x60", "--resampler", "area"),
        (*TINY, "--crop-reference", "64x48+8+8", "--crop-distorted", "64x48+8+8", "--deepen"),
        (*TINY, "--turn-reference", "180", "--turn-distorted", "180"),
        (*TINY[:2], "--crop", "auto", "--feature", "float_ssim=precision=exact"),
    ],
    ids=" ".join,
)
def test_the_command_scores_the_same(folder: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    name = tmp_path / "it's a clip.mkv"
    (folder / "ref.mkv").rename(name)
    try:
        first = succeed("score", "-r", str(name), "-d", str(folder / "dis.mp4"), "--json", "-q", *words)
        command = shlex.split(json.loads(first.stdout)["scoring"]["command"])
        assert command[:2] == ["vkssim", "score"]
        assert vkssim(*command[1:], "--json", "-q").stdout == first.stdout
    finally:
        name.rename(folder / "ref.mkv")


def test_the_command_of_raw_files(folder: Path) -> None:
    path = str(folder / "ref.yuv")
    first = vkssim("score", "-r", path, "-d", path, *raw_flags(LUMA), *TINY, "--json", "-q")
    command = shlex.split(json.loads(first.stdout)["scoring"]["command"])
    assert vkssim(*command[1:], "--json", "-q").stdout == first.stdout


def test_the_command_names_no_device_and_no_output(folder: Path, tmp_path: Path) -> None:
    feature = "float_psnr"  # whose kernel compiles soonest
    words = ("--device", "llvmpipe", "--feature", feature, "-o", str(tmp_path / "a.json"), "--strict", "--fail-under")
    vkssim("score", "-r", str(folder / "ref.mkv"), "-d", str(folder / "dis.mp4"), "-q", *words, "float_psnr=1")
    command = json.loads((tmp_path / "a.json").read_text())["scoring"]["command"]
    assert command == f"vkssim score -r {folder}/ref.mkv -d {folder}/dis.mp4 --feature {feature}"


def test_what_grants_access_is_in_no_record(folder: Path) -> None:
    urls = "https://user:secret@host/a.mkv?sig=secret", "https://host/b.mp4?sig=secret"
    paths = [str(folder / name) for name in ("ref.mkv", "dis.mp4")]
    with open_source(paths[0], RawDescription()) as first, open_source(paths[1], RawDescription()) as second:
        report = score_range((first, second), Clips(*urls), CpuBackend, ScoreOptions((FEATURE,))).report
    for form in ("json", "xml", "csv"):
        assert "secret" not in render(report, form)
    assert record_of(report).distorted.path.startswith("https://host/b.mp4?…")


# -- declared once ----------------------------------------------------------------------------------------------------


def test_features_say_all_of_their_options(folder: Path) -> None:
    for name in FEATURES:
        luma = clip(1, 240, 240)
        path = write(folder / "large.y4m", y4m_bytes(luma))
        (feature,) = features_of(folder, name, reference=path, distorted=path, backend="cpu").values()
        assert list(feature.options) == list(FEATURES[name].options)
