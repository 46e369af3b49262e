"""Damaged streams: what FFmpeg reports is one warning, with frame threads and without, and frames before it are sound."""

from __future__ import annotations

import gc
import json
import random
import re
import threading
import zlib
from collections.abc import Callable, Iterable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import av
import pytest

from vkssim.frames.decode import clip_decoder, container
from vkssim.frames.decode.decoder import Decoder, UndecodableError
from vkssim.frames.decode.sample_index import PacketScan
from vkssim.storage.containers import open_container
from vkssim.utils import ffmpeg_log

from ..support.children import in_child
from ..support.clips import write
from ..support.coded import corpus
from ..support.coded.clip import CodedClip
from ..support.coded.damage import remux, video_packets
from ..support.commands import vkssim
from .encoding import encode_frames, moving_frames
from .reading import open_source, read_planes

FRAMES, GOP = 36, 12
HEIGHT, WIDTH = 96, 160
KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "h264": ("mp4", "libx264", {"bf": "3", "crf": "24", "x264-params": "slice-max-size=400:mbtree=0:asm=avx2"}),
    "hevc": ("mp4", "libx265", {"x265-params": f"log-level=none:keyint={GOP}:bframes=3:pools=1:frame-threads=1"}),
    "vp9": ("webm", "libvpx-vp9", {"lag-in-frames": "0", "cpu-used": "8", "b": "400k"}),
    "mpeg4": ("avi", "mpeg4", {}),
}
"""Their bytes are the same every time: one thread encodes, and x264 works without mbtree, with which it is not deterministic,
and without AVX-512, with which it gives other pictures."""

PSNR = "--backend", "cpu", "--feature", "float_psnr"
"""The quickest metric."""

Damage = Callable[[str, int], str]


@pytest.fixture(scope="module")
def sound(folder: Path) -> dict[str, str]:
    return {
        kind: encode_frames(
            folder / f"{kind}.{ending}",
            moving_frames(FRAMES, HEIGHT, WIDTH, 24),
            codec,
            options={"threads": "1", "g": str(GOP), **options},
        )
        for kind, (ending, codec, options) in KINDS.items()
    }


@pytest.fixture(scope="module")
def damaged(folder: Path, sound: dict[str, str]) -> Damage:
    """A clip with a few bytes altered within a packet that is not the first, at a random place."""

    def make(kind: str, seed: int) -> str:
        path = folder / f"{kind} {seed}{Path(sound[kind]).suffix}"
        if path.exists():
            return str(path)
        chance, data = random.Random(seed), bytearray(Path(sound[kind]).read_bytes())
        packet = video_packets(Path(sound[kind]))[chance.randrange(2, FRAMES - 2)]
        at = data.index(packet) + chance.randrange(len(packet) // 4, len(packet) // 2)
        data[at : at + 24] = chance.randbytes(24)
        return write(path, bytes(data))

    return make


def _threads(monkeypatch: pytest.MonkeyPatch, threads: bool) -> None:
    monkeypatch.setattr(clip_decoder, "threads_help", lambda: threads)


def _everything(path: str) -> tuple[Any, ...]:
    """The CRC of each frame, and the warnings on the clip."""
    with open_source(path) as source:
        target = source.info.new_planes(1)
        frames: list[int] = []
        while source.read([len(frames)], [target]):
            frames.append(zlib.crc32(target[0].tobytes()))
        return frames, dict(source.damage), list(source.remarks), str(source.problem), source.info.notes


SEEDS = (1, 2, 3, 4)
UNNOTICED = {("hevc", 1), ("hevc", 2), ("hevc", 4), *(("vp9", seed) for seed in SEEDS)}
"""Damage of which FFmpeg says nothing (docs/adr/0010)."""


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_reported_from_its_first_frame_on(
    monkeypatch: pytest.MonkeyPatch, sound: dict[str, str], damaged: Damage, kind: str, threads: bool
) -> None:
    """The frames before it are those of the sound clip, however many are being decoded at a time."""
    _threads(monkeypatch, False)
    intact = _everything(sound[kind])
    assert intact[1:4] == ({}, [], "None")
    _threads(monkeypatch, threads)
    assert _everything(sound[kind]) == intact
    for seed in SEEDS:
        frames, damage, remarks, problem, _ = _everything(damaged(kind, seed))
        assert frames != intact[0]
        assert bool(damage or remarks or problem != "None") == ((kind, seed) not in UNNOTICED)
        if (kind, seed) not in UNNOTICED:
            first = min([*damage, *(frame for frame, _ in remarks), len(frames)])
            assert frames[:first] == intact[0][:first]
        if not threads:
            assert _everything(damaged(kind, seed))[:4] == (frames, damage, remarks, problem), "without threads, every time"


def test_every_codec_is_decoded_on_threads_to_its_end(
    monkeypatch: pytest.MonkeyPatch, sound: dict[str, str], damaged: Damage
) -> None:
    """Also a damaged clip."""
    _threads(monkeypatch, True)
    for path in (*sound.values(), damaged("h264", 2)):
        with open_source(path) as source:
            assert isinstance(source, container.ContainerFile)
            decoder, target = source._clip.decoder, source.info.new_planes(1)
            assert source.read(range(FRAMES + 1), [target] * (FRAMES + 1)) == FRAMES
            assert decoder is source._clip.decoder
            # Sixteen threads have seen the damage by the first frame, which is then decoded without them.
            assert decoder.threads or path not in sound.values()
            assert bool(source.damage) == (path not in sound.values())
            assert not source.remarks


# -- scores -----------------------------------------------------------------------------------------------------------


def _scored(*words: str) -> tuple[int, str, str]:
    """The exit code of `vkssim score`, all scores and its messages."""
    result = vkssim("score", *words, *PSNR, "-q", "--csv", "-o", "-", "--precision", "max")
    return result.exit_code, result.stdout, result.stderr


def test_in_a_batch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sound: dict[str, str], damaged: Damage) -> None:
    """Clips that share a reference which is damaged itself."""
    _threads(monkeypatch, False)
    reference, distorted = sound["h264"], damaged("h264", 2)
    (tmp_path / "ladder.csv").write_text(
        "reference,distorted\n" + "".join(f"{distorted},{clip}\n" for clip in (reference, damaged("h264", 4), sound["hevc"]))
    )
    tables = []
    for run in range(2):
        table = tmp_path / f"{run}.jsonl"
        result = vkssim("batch", str(tmp_path / "ladder.csv"), "-o", str(table), *PSNR, "-q")
        assert result.exit_code == 0, result.output
        tables.append((table.read_text(), result.stderr))
    assert tables[0] == tables[1]
    assert [row["warnings"].count("is damaged from frame") for row in map(json.loads, tables[0][0].splitlines())] == [1, 2, 1]


def test_only_frames_that_are_scored_are_warned_of(sound: dict[str, str], damaged: Damage) -> None:
    """A decoder reads ahead, and a clip is read beyond the end of the other clip."""
    path = damaged("h264", 2)
    with open_source(path) as source:
        target = source.info.new_planes(1)
        source.read(range(FRAMES), [target] * FRAMES)
        first = min(source.damage)
    assert first > 1
    words = ("-r", sound["h264"], "-d", path)
    assert "damaged" not in _scored(*words, "--frame_cnt", str(first))[2]
    messages = _scored(*words, "--frame_cnt", str(first + 1))[2]
    assert re.search(rf"is damaged from frame {first} on, in 1 frame: .*FFmpeg says: \w", messages)
    subsampled = _scored(*words, "--subsample", "2", "--frame_cnt", str(first + 2))[2]
    assert f"from frame {first} on" in subsampled, "other frames may refer to it"


@pytest.mark.parametrize("threads", [False, True])
def test_damage_is_an_error_with_strict(
    monkeypatch: pytest.MonkeyPatch, sound: dict[str, str], damaged: Damage, threads: bool
) -> None:
    _threads(monkeypatch, threads)
    words = ("-r", sound["h264"], "-d", damaged("h264", 2))
    assert _scored("-r", words[1], "-d", words[1], "--strict")[0] == 0
    assert _scored(*words)[0] == 0
    code, scores, messages = _scored(*words, "--strict")
    assert code == 1
    assert len(scores.splitlines()) == FRAMES + 1
    assert re.search(r"is damaged from frame \d+ on, in \d+ frames?: .*\(--strict\)", messages)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("place", [9, FRAMES - 1])
def test_the_frame_that_cannot_be_decoded_is_named(
    monkeypatch: pytest.MonkeyPatch, folder: Path, place: int, threads: bool
) -> None:
    """And those before it are scored, however many were on their way."""
    _threads(monkeypatch, threads)
    whole = folder / "plain.webm"
    if not whole.exists():
        encode_frames(
            whole,
            moving_frames(FRAMES, HEIGHT, WIDTH, 24),
            "libvpx-vp9",
            options={"g": str(GOP), "lag-in-frames": "0", "cpu-used": "8"},
        )
    data = bytearray(whole.read_bytes())
    at = data.index(video_packets(whole)[place])
    data[at] = 0  # no frame begins so
    path = write(folder / f"torn {place}.webm", bytes(data))
    intact, torn = _everything(str(whole)), _everything(path)
    assert f"frame {place} cannot be decoded" in torn[3]
    assert torn[0] == intact[0][:place]


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(("codec", "ending"), [("mpeg2video", "mkv"), ("mpeg4", "nut"), ("libx265", "mp4")])
@pytest.mark.parametrize("place", [1, 2, 20])
def test_a_packet_that_gives_no_frame_is_noticed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, codec: str, ending: str, place: int, threads: bool
) -> None:
    """MPEG-2's decoder says nothing about it, and others may fail before they have returned the first frame."""
    _threads(monkeypatch, threads)
    whole, path = folder / f"{codec} sound.{ending}", folder / f"{codec} {place}.{ending}"
    if not whole.exists():
        options = {"x265-params": "log-level=none:bframes=2:pools=1"} if codec == "libx265" else {"bf": "2"}
        encode_frames(whole, moving_frames(FRAMES, HEIGHT, WIDTH, 24), codec, options={"g": str(GOP), **options})
    assert _everything(str(whole))[1:4] == ({}, [], "None")
    remux(whole, path, lambda number, packet: bytes(8) if number == place else packet)
    frames, damage, _, problem, notes = _everything(str(path))
    assert 0 < len(frames) < FRAMES
    assert min(damage, default=FRAMES) <= place or "cannot be decoded" in problem or any("skipped" in note for note in notes)


@pytest.mark.parametrize("threads", [False, True])
def test_a_packet_that_the_receiver_of_a_broadcast_marked(monkeypatch: pytest.MonkeyPatch, folder: Path, threads: bool) -> None:
    """FFmpeg decodes it and says nothing. The samples of this one are those of the sound clip."""
    _threads(monkeypatch, threads)
    path = encode_frames(
        folder / "broadcast.ts", moving_frames(FRAMES, HEIGHT, WIDTH, 24), "mpeg2video", options={"g": str(GOP)}
    )
    intact = _everything(path)
    assert intact[1:4] == ({}, [], "None")
    data, place = bytearray(Path(path).read_bytes()), 20
    video = [at for at in range(0, len(data), 188) if (data[at + 1] & 0x1F, data[at + 2]) == (1, 0)]
    first = [at for at in video if data[at + 1] & 0x40][place]
    data[first + 1] |= 0x80  # transport_error_indicator, ISO/IEC 13818-1, 2.4.3.3
    marked = _everything(write(folder / "marked.ts", bytes(data)))
    assert marked[0] == intact[0]
    assert list(marked[1].values()) == ["a packet is marked as corrupt"]
    assert min(marked[1]) <= place


@pytest.mark.parametrize("threads", [False, True])
def test_packets_are_counted_once(monkeypatch: pytest.MonkeyPatch, damaged: Damage, threads: bool) -> None:
    """However often they are read."""
    _threads(monkeypatch, threads)
    scanned: list[PacketScan] = []
    monkeypatch.setattr(PacketScan, "read", scanned.append)
    path = damaged("h264", 2)
    expected = sum(map(len, video_packets(Path(path))))
    with open_source(path) as source:
        target = source.info.new_planes(1)
        assert source.read(range(FRAMES + 1), [target] * (FRAMES + 1)) == FRAMES
        assert source.damage
        packets = source.packets()
        assert packets is not None
        assert packets.bytes == expected
        assert not scanned, "counted on the way"


# -- FFmpeg's messages ------------------------------------------------------------------------------------------------


def test_the_level_of_the_log_is_restored(monkeypatch: pytest.MonkeyPatch, damaged: Damage) -> None:
    _threads(monkeypatch, True)
    for level in (None, av.logging.ERROR):
        av.logging.set_level(level)
        try:
            _everything(damaged("h264", 1))
            assert av.logging.get_level() == level
            assert av.logging.get_skip_repeated()
        finally:
            av.logging.set_level(None)


def _channel() -> ffmpeg_log.Channel:
    ffmpeg_log.listen()
    channel = ffmpeg_log.open_channel("h264")
    assert channel is not None
    return channel


def test_messages_belong_to_one_decoder() -> None:
    first, second = (_channel() for _ in range(2))
    try:
        error = av.logging.ERROR
        for level, decoder, text in (
            (error + first.number, "h264", "error while decoding MB 1 2"),
            (error + second.number, "h264", "error while decoding MB 1 3"),
            (error, "h264", "of a decoder that probes a file"),
            (error + first.number, "hevc", "Could not find ref"),
        ):
            av.logging.log(level, decoder, text)
        with ffmpeg_log.hearing() as messages:
            av.logging.log(error, "h264", "of this thread alone")
        assert first.take() == [(error + first.number, "error while decoding MB 1 2")]
        assert first.take() == []
        assert second.take() == [(error + second.number, "error while decoding MB 1 3")]
        assert [text for _, _, text in messages] == ["of this thread alone"]
    finally:
        ffmpeg_log.leave(first)
        ffmpeg_log.leave(second)


@pytest.mark.parametrize(
    ("level", "text", "is_worrying", "is_damage"),
    [
        (av.logging.ERROR + 3, "error while decoding MB 1 2", True, True),
        (av.logging.WARNING + 7, "Increasing reorder buffer to 2", True, False),
        (av.logging.WARNING, "Skipping invalid undecodable NALU: 39", True, True),
        (av.logging.INFO + 1, "Reinit context", False, False),
        (av.logging.INFO + 1, "concealing 9 DC, 9 AC, 9 MV errors in P frame", True, True),
    ],
)
def test_messages_that_mean_damage(level: int, text: str, is_worrying: bool, is_damage: bool) -> None:
    assert (ffmpeg_log.is_worrying(level, text), ffmpeg_log.is_damage(level, text)) == (is_worrying, is_damage)


@pytest.mark.parametrize("kind", ["h264", "mpeg4"])
def test_damage_of_one_clip_is_not_that_of_another(
    monkeypatch: pytest.MonkeyPatch, sound: dict[str, str], damaged: Damage, kind: str
) -> None:
    """Two clips of one codec, read in turn."""
    _threads(monkeypatch, True)
    for seed in SEEDS:
        with open_source(damaged(kind, seed)) as torn, open_source(sound[kind]) as whole:
            target = torn.info.new_planes(1)
            for number in range(FRAMES):
                for source in (torn, whole):
                    source.read([number], [target])
            assert torn.damage or torn.problem
            assert (dict(whole.damage), list(whole.remarks), whole.problem) == ({}, [], None), f"seed {seed}"


def test_damage_of_a_file_that_is_probed_is_no_damage_of_a_clip(monkeypatch: pytest.MonkeyPatch, sound: dict[str, str]) -> None:
    """FFmpeg decodes a few frames of some files while it opens them."""
    _threads(monkeypatch, True)
    with open_source(sound["h264"]) as source:
        av.logging.log(av.logging.ERROR, "h264", "error while decoding MB 1 2")
        read_planes(source, range(3), 1)
        assert not source.damage


def test_a_decoder_for_which_no_channel_is_left_has_no_threads(monkeypatch: pytest.MonkeyPatch, sound: dict[str, str]) -> None:
    _threads(monkeypatch, True)
    with ExitStack() as stack:
        sources = [stack.enter_context(container.ContainerFile(sound["h264"])) for _ in range(7)]
        assert [source._clip.decoder.threads for source in sources] == [True] * 6 + [False]
        sources[3].close()
        again = stack.enter_context(container.ContainerFile(sound["h264"]))
        assert again._clip.decoder.threads


def test_an_unknown_profile_is_no_damage(sound: dict[str, str]) -> None:
    with av.open(sound["hevc"]) as clip:
        parameters = bytearray(clip.streams.video[0].codec_context.extradata or b"")
    sets = parameters.index(b"\x42\x01\x01")  # the header of the sequence parameters; their profile follows
    parameters[sets + 3] |= 31
    decoder: Any = av.CodecContext.create("hevc", "r")
    decoder.extradata = bytes(parameters)
    ffmpeg_log.listen()
    try:
        with ffmpeg_log.hearing() as messages:
            decoder.open()
        (message,) = [(level, text) for level, _, text in messages if "profile bitstream" in text]
        assert message[0] == av.logging.WARNING
        assert not ffmpeg_log.is_worrying(*message)
    finally:
        ffmpeg_log.leave()


def test_a_clip_that_is_let_go_of_half_way_stops_its_threads(monkeypatch: pytest.MonkeyPatch, damaged: Damage) -> None:
    """A thread that has something to say waits for the GIL, which whoever waits for the thread must not hold."""
    _threads(monkeypatch, True)
    for _ in range(20):
        source = open_source(damaged("h264", 1))
        source.read([0], [source.info.new_planes(1)])
        del source
    gc.collect()
    assert av.logging.get_level() is None


# -- hardware that nobody listens to ----------------------------------------------------------------------------------

STREAMS = {
    "open GOPs": "bframes=4:open-gop=1:b-pyramid=1:ref=4",
    "slices": "bframes=2:slices=4",
    "parameter sets in each GOP": "bframes=3:repeat-headers=1:aud=1:hash=1:hrd=1:vbv-maxrate=800:vbv-bufsize=800",
}
DAMAGED_CLIPS = 72
SHORT, SHORT_GOP = 24, 8
"""Frames of these clips, and of their groups."""


def _strictly_decoded(path: Path, note: Callable[[Any], object] = lambda _frame: None) -> tuple[int, bool]:
    """The number of frames that are returned as those of hardware are, and whether there is a sign of damage.

    `note` is called with each frame.
    """
    with open_container(str(path)) as clip:
        stream = clip.streams.video[0]
        decoder = Decoder(clip, stream, stream.codec_context, threads=False, hardware=True)
        try:
            assert av.logging.get_level() is None, "nobody listens"
            while (frame := decoder.next()) is not None:
                note(frame)
            return decoder.frame_count, False
        except (av.FFmpegError, UndecodableError):
            return decoder.frame_count, True
        finally:
            decoder.close()


def _with_damaged_header(whole: Path, path: Path, seed: int) -> None:
    """Alter what FFmpeg itself reads if hardware decodes: headers, parameter sets, and which units and packets there are."""
    chance = random.Random(seed)
    place = chance.randrange(1, SHORT)

    def change(number: int, packet: bytes) -> bytes | None:
        if number != place:
            return packet
        units, at = [], 0
        while at < len(packet):
            size = int.from_bytes(packet[at : at + 4])
            units.append(bytearray(packet[at + 4 : at + 4 + size]))
            at += 4 + size
        unit, kind = chance.choice(units), chance.randrange(6)
        if kind == 0:
            return None
        if kind == 1:
            units.remove(unit)
        elif kind == 2:
            del unit[chance.randrange(2, len(unit)) :]
        else:
            unit[chance.randrange(2, min(10, len(unit)))] ^= 1 << chance.randrange(8)
        return b"".join(len(unit).to_bytes(4) + unit for unit in units) or bytes(1)

    remux(whole, path, change)


@pytest.mark.parametrize("kind", STREAMS)
def test_errors_and_marks_show_the_damage_that_messages_tell_of(
    folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of some damage only messages tell. None of these clips has it. Threads report it some frames early."""
    _threads(monkeypatch, False)
    whole, path = folder / f"{kind}.mp4", folder / f"{kind}, damaged.mp4"
    params = (
        f"log-level=none:pools=1:frame-threads=1:keyint={SHORT_GOP}:ctu=16:{STREAMS[kind]}"  # four rows of blocks, for slices
    )
    encode_frames(whole, moving_frames(SHORT, 64, 64, 24), "libx265", options={"x265-params": params, "crf": "30"})
    assert _strictly_decoded(whole) == (SHORT, False)
    told = 0
    for seed in range(DAMAGED_CLIPS):
        _with_damaged_header(whole, path, seed)
        _, damage, remarks, problem, _ = _everything(str(path))
        if damage or remarks or problem != "None":
            told += 1
            frames, is_noticed = _strictly_decoded(path)
            assert is_noticed, f"seed {seed}"
            assert frames <= min([*damage, *(frame for frame, _ in remarks), SHORT]), f"seed {seed}"
    assert told > DAMAGED_CLIPS // 4


HEVC = corpus.shortened(corpus.HEVC, 30)
"""Their second key frame is the 25th."""


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the clips of HEVC, which one child writes: a fork takes longer than most of them do."""
    folder = tmp_path_factory.mktemp("hevc")
    _write(folder, HEVC)
    return folder


@in_child
def _write(folder: Path, clips: Iterable[CodedClip]) -> None:
    for clip in clips:
        clip.write(folder)


@pytest.mark.parametrize("clip", HEVC, ids=lambda clip: clip.name)
def test_sound_streams_give_no_sign_of_damage(coded: Path, clip: CodedClip) -> None:
    interlaced: list[bool] = []
    assert _strictly_decoded(coded / clip.name, lambda frame: interlaced.append(frame.interlaced_frame)) == (clip.frames, False)
    assert interlaced == [False] * clip.frames


def test_hardware_listens_to_other_decoders(sound: dict[str, str]) -> None:
    with open_container(sound["h264"]) as clip:
        stream = clip.streams.video[0]
        decoder = Decoder(clip, stream, stream.codec_context, threads=False, hardware=True)
        assert av.logging.get_level() is not None
        decoder.close()
    assert av.logging.get_level() is None


def test_hardware_notices_a_message_from_a_thread_of_its_driver(sound: dict[str, str]) -> None:
    with open_container(sound["h264"]) as clip:
        stream = clip.streams.video[0]
        decoder = Decoder(clip, stream, stream.codec_context, threads=False, hardware=True)
        assert decoder._channel is not None
        decoder.next()
        for number, is_own in ((0, False), (decoder._channel.number, True)):
            thread = threading.Thread(
                target=av.logging.log, args=(av.logging.ERROR + number, "h264", "output image buffer is null")
            )
            thread.start()
            thread.join()
            with pytest.raises(UndecodableError, match="buffer is null") if is_own else nullcontext():
                for _ in range(10):
                    assert decoder.next() is not None
        decoder.close()


class _WithoutItsEnd:
    """A container that cannot be read again."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def __getattr__(self, name: str) -> Any:
        return getattr(self._container, name)

    def seek(self, *_words: Any, **_options: Any) -> None:
        raise OSError("lost")


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9, 1])
def test_matroska_that_is_cut_off_is_noticed_by_its_last_frame(folder: Path, sound: dict[str, str], part: float) -> None:
    """It ends without an error, and only a message tells why."""
    whole, path = folder / "hevc.mkv", folder / f"{part} of hevc.mkv"
    remux(Path(sound["hevc"]), whole, lambda _number, packet: packet)
    data = whole.read_bytes()
    write(path, data[: int(len(data) * part)])
    packets = len(video_packets(path))
    for readable in (True, False):
        with open_container(str(path)) as clip:
            stream, container = clip.streams.video[0], clip if readable else _WithoutItsEnd(clip)
            decoder = Decoder(container, stream, stream.codec_context, threads=False, hardware=True)
            for _ in range(packets):
                assert decoder.next() is not None
                assert av.logging.get_level() is None, "nobody listens"
            assert decoder.is_cut_off == (part < 1 and readable)
            assert decoder.next() is None
            assert decoder.count.presented == packets
            decoder.close()
