"""Test presentation times: a packet need not be a frame, nor have a time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim import Selection, score_files
from vkssim.errors import InputError
from vkssim.frames.decode import sample_index
from vkssim.frames.decode.container import ContainerFile
from vkssim.frames.decode.packets import FrameTimes

from ..support.clips import write
from ..support.coded.damage import remux, video_packets
from ..support.pictures import clip
from .encoding import encode_frames, flat_chroma
from .fields import write_fields
from .reading import open_source, read

FRAMES, HEIGHT, WIDTH = 30, 64, 96
TINY: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}
ORDER: dict[str, Any] = {"features": "float_psnr", "backend": "cpu"}
"""What tells whether frames are paired alike."""
NOT_CODED = 7, 19


def _pictures(frames: int = FRAMES) -> list[av.VideoFrame]:
    """Each moves a little, so that none is like its neighbours."""
    texture = clip(1, HEIGHT, WIDTH + frames)[0]
    return flat_chroma(np.stack([texture[:, number : number + WIDTH] for number in range(frames)]))


@pytest.fixture(scope="module")
def exact(folder: Path) -> str:
    """The pictures without loss, in a container that says when each is shown."""
    return encode_frames(folder / "exact.mkv", _pictures(), "ffv1")


def _times(path: str) -> np.ndarray:
    """The times known beforehand, which have to be those that reading gives."""
    with open_source(path) as source:
        found = source.times()
        assert found is not None
        frames = len(read(source))
        assert source.problem is None
        assert len(found) == frames
        each = [time for time in source.times_of(range(frames)) if time is not None]
        np.testing.assert_allclose(found, each, atol=1e-9)
    return found


def _scores(reference: str, distorted: str, sync: str) -> list[float]:
    report = score_files(reference, distorted, sync=sync, **ORDER)
    assert report.warnings == []
    scores: list[float] = report.column("float_psnr").tolist()
    return scores


def _with_packets(source: str, path: Path, before: Callable[[int, bytes], bytes | None]) -> str:
    """A clip with additional packets: `before` gets number and bytes of each, and returns the packet 20 ms before it."""
    with av.open(source) as old, av.open(str(path), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        for number, packet in enumerate(packet for packet in old.demux(video=0) if packet.size):
            assert packet.pts is not None
            more = before(number, bytes(packet))
            packets: list[av.Packet[Any]] = [packet] if more is None else [av.Packet(more), packet]
            for place, one in zip((packet.pts - 20, packet.pts)[-len(packets) :], packets, strict=True):
                one.stream, one.time_base, one.pts, one.dts = stream, Fraction(1, 1000), place, place
                one.is_keyframe = packet.is_keyframe
                new.mux(one)
    return str(path)


def test_frames_of_vp8_that_are_not_shown(folder: Path, exact: str) -> None:
    """As alternate references are: they have packets, and no frame. Here each key frame comes twice, once unseen."""
    plain = encode_frames(folder / "plain.webm", _pictures(), "libvpx", options={"g": "10", "b": "2M"})

    def unseen(number: int, data: bytes) -> bytes | None:
        is_key, shown = not data[0] & 1, 1 << 4  # RFC 6386, 9.1
        return bytes([data[0] & ~shown]) + data[1:] if number and is_key else None

    path = _with_packets(plain, folder / "hidden.webm", unseen)
    assert len(video_packets(Path(path))) > FRAMES
    np.testing.assert_allclose(_times(path), np.arange(FRAMES) / 25, atol=1e-9)
    for clips in ((exact, path), (path, exact)):
        assert _scores(*clips, "pts") == _scores(*clips, "index")
    from_half = score_files(path, exact, selection=Selection(start="0.6s"), **TINY)
    assert from_half.frames[0].index == 15


@pytest.fixture(scope="module")
def not_coded(folder: Path) -> tuple[str, list[int]]:
    """A clip of MPEG-4 with pictures that say that they are not coded, and the numbers of its frames among `exact`'s."""
    shown = [number for number in range(FRAMES) if number not in NOT_CODED]
    pictures, seconds = _pictures(), [number / 25 for number in shown]
    coded = [pictures[number] for number in shown]
    whole = encode_frames(folder / "coded.mkv", coded, "mpeg4", options={"qmax": "3"}, times=seconds, bit_rate=8_000_000)

    def empty(number: int, data: bytes) -> bytes | None:
        """The header of the next picture, with `vop_coded` 0: ISO/IEC 14496-2, 6.2.5."""
        if shown[number] - 1 not in NOT_CODED:
            return None
        at = data.index(b"\0\0\1\xb6") + 4
        bits = np.unpackbits(np.frombuffer(data[at : at + 8], np.uint8))
        seconds = int(np.argmin(bits[2:])) + 1  # ones, which a zero ends
        flag = 2 + seconds + 1 + (1000 - 1).bit_length() + 1  # a marker, milliseconds, a marker
        assert bits[flag - 1] == bits[flag] == 1
        bits[flag : flag + 2] = 0
        bits[flag + 2 :] = 1
        return data[:at] + np.packbits(bits[: -(-(flag + 2) // 8) * 8]).tobytes()

    return _with_packets(whole, folder / "skipped.mkv", empty), shown


def test_pictures_of_mpeg4_that_are_not_coded(exact: str, not_coded: tuple[str, list[int]]) -> None:
    path, shown = not_coded
    assert len(video_packets(Path(path))) == FRAMES
    np.testing.assert_allclose(_times(path), np.array(shown) / 25, atol=1e-9)
    report = score_files(exact, path, sync="pts", **TINY)
    assert [frame.index for frame in report.frames] == shown
    assert report.column("float_ssim").min() > 0.9


def test_a_packet_that_gives_no_frame(exact: str, not_coded: tuple[str, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the times come from packets and one of them gives no frame, later frames would be paired wrongly."""
    monkeypatch.setattr(sample_index, "ONE_FRAME_A_PACKET", {"mpeg4", "ffv1"})
    path, _ = not_coded
    message = r"skipped.mkv: frame 7 is presented at 0\.320 s, but its packet at 0\.300 s"
    for clips in ((exact, path), (path, exact)):
        with pytest.raises(InputError, match=message) as caught:
            score_files(*clips, sync="pts", **TINY)
        assert caught.value.report is not None
        assert caught.value.report.column("float_ssim").min() > 0.9
        assert len(caught.value.report.frames) == 7
    with pytest.raises(InputError, match="`sync=index`"):
        score_files(path, exact, selection=Selection(end="1s"), **TINY)


def test_fields_that_are_coded_one_by_one(folder: Path) -> None:
    """Two packets are a frame."""
    luma = clip(8, 64, 48)
    plain = encode_frames(folder / "plain.mkv", flat_chroma(luma), "ffv1")
    for ending in ("ts", "mkv", "mp4"):
        path = write_fields(folder / f"fields.{ending}", luma)
        assert len(video_packets(Path(path))) == 2 * len(luma)
        np.testing.assert_allclose(_times(path), np.arange(8) / 25, atol=1e-9)
        for clips in ((plain, path), (path, plain)):
            assert score_files(*clips, sync="pts", **TINY).column("float_ssim").tolist() == [1] * 8
        assert [frame.time for frame in score_files(path, path, **TINY).frames] == pytest.approx(np.arange(8) / 25)
        with open_source(path) as source:
            assert source.info.field_order == "top field first"


@pytest.mark.parametrize(("codec", "options"), [("mpeg2video", {"bf": "2"}), ("libx264", {"bf": "2", "qp": "0"})])
def test_transport_streams_put_together(folder: Path, codec: str, options: dict[str, str]) -> None:
    """The times of the second stream start again after the first."""
    pictures = _pictures(2 * FRAMES)
    whole = encode_frames(folder / "both.mkv", pictures, "ffv1")
    parts = [
        encode_frames(folder / f"{codec} {place}.ts", part, codec, options={"g": "10", **options})
        for place, part in enumerate((pictures[:FRAMES], pictures[FRAMES:]))
    ]
    path = write(folder / f"{codec} joined.ts", b"".join(Path(part).read_bytes() for part in parts))
    found = _times(path)
    np.testing.assert_allclose(found, np.arange(2 * FRAMES) / 25, atol=1e-9)
    for clips in ((whole, path), (path, whole)):
        report = score_files(*clips, sync="pts", **TINY)
        assert len(report.frames) == 2 * FRAMES
        assert report.column("float_ssim").min() > 0.8
        assert any(f"joined.ts, frame {FRAMES}: the presentation times go back" in warning for warning in report.warnings)
        assert not any("out of step" in warning for warning in score_files(*clips, **ORDER).warnings)


X264 = {"bf": "3", "g": "12", "x264-params": "b-adapt=0"}


def _packed(source: str, path: Path) -> str:
    """AVI of early Xvid encoders: a picture and the previously presented one in one packet, then an empty packet."""
    with av.open(source) as old, av.open(str(path), "w") as new:
        stream = new.add_stream_from_template(old.streams.video[0])
        pictures = [bytes(packet) for packet in old.demux(video=0) if packet.size]
        kinds = [picture[picture.index(b"\0\0\1\xb6") + 4] >> 6 for picture in pictures]  # I, P, B
        packets: list[bytes] = []
        for picture, kind, following in zip(pictures, kinds, [*kinds[1:], 0], strict=True):
            name = picture.find(b"\0\0\1\xb2Lavc")
            if name >= 0:
                picture = picture[:name] + b"\0\0\1\xb2DivX503b1393p" + picture[picture.index(b"\0\0\1", name + 4) :]
            if kind == 2:
                packets[-1] += picture
                packets.append(b"\0\0\1\xb6" + bytes([0b01010000, 0b01011111]))  # time in 5 bits, `vop_coded` 0
            else:
                packets.append(picture)
                assert kind == 0 or following == 2
        for number, data in enumerate(packets):
            packet: av.Packet[Any] = av.Packet(data)
            packet.stream, packet.time_base, packet.is_keyframe = stream, Fraction(1, 25), number == 0
            packet.pts = packet.dts = number
            new.mux(packet)
    return str(path)


@pytest.mark.parametrize(
    ("ending", "codec", "options"),
    [
        ("avi", "libx264", X264),
        ("mxf", "libx264", X264),
        ("asf", "libx264", X264),
        ("mp4", "libx264", X264),  # copied from AVI
        ("avi", "mpeg4", {"bf": "2"}),
        ("avi", "packed", {"bf": "1", "g": "99"}),
        ("mpg", "libx264", X264),  # some packets have no times
    ],
)
def test_containers_that_do_not_say_when_each_frame_is_shown(
    folder: Path, exact: str, ending: str, codec: str, options: dict[str, str]
) -> None:
    """Frames that are decoded in another order than they are shown are shown one after the other all the same."""
    count = FRAMES - (codec == "packed")  # so that the last picture is one that another refers to
    first = folder / f"{codec}.{'avi' if ending == 'mp4' else ending}"
    path = encode_frames(first, _pictures()[:count], codec.replace("packed", "mpeg4"), options=options)
    if ending == "mp4":
        copied = folder / "copied.mp4"
        remux(Path(path), copied, lambda _number, data: data)
        path = str(copied)
    elif codec == "packed":
        path = _packed(path, folder / "really packed.avi")
    with av.open(path) as file:
        ticks = [frame.pts for frame in file.decode(video=0)]
    assert codec == "mpeg4" or None in ticks or ticks != sorted(ticks, key=lambda tick: tick or 0)
    np.testing.assert_allclose(_times(path), np.arange(count) / 25, atol=1e-9)
    assert len(score_files(path, path, sync="pts", **ORDER).frames) == count
    for clips in ((exact, path), (path, exact)):
        by_time, by_index = (score_files(*clips, sync=sync, **ORDER) for sync in ("pts", "index"))
        assert by_time.column("float_psnr").tolist() == by_index.column("float_psnr").tolist()
        assert not any("out of step" in warning for warning in by_index.warnings)
    assert [frame.time for frame in score_files(path, exact, **ORDER).frames] == pytest.approx(np.arange(count) / 25)


def _without_times(data: bytearray) -> None:
    """Leave the first packet alone its times, in a program stream: ISO/IEC 13818-1, 2.4.3.6."""
    at = data.find(b"\0\0\1\xe2")
    while (at := data.find(b"\0\0\1\xe2", at + 4)) >= 0:
        length = data[at + 8]
        data[at + 7] &= 0x3F
        data[at + 9 : at + 9 + length] = b"\xff" * length


def _repeat_pictures(data: bytearray, repeated: np.ndarray) -> None:
    """Have pictures of H.264 shown for two frames each, by their messages on timing: ITU-T H.264, table D-1."""
    at = 0
    for twice in repeated:
        at = data.index(b"\0\0\1\x06\x01\x01", at) + 6
        assert data[at] == 0b0000_0_100
        data[at] = 0b0111_00_10 if twice else data[at]


def test_pictures_that_are_shown_for_longer_count_if_they_have_no_times(folder: Path) -> None:
    options = {**X264, "x264-params": "b-adapt=0:pic-struct=1"}
    with av.open(encode_frames(folder / "repeated.mp4", _pictures(), "libx264", options=options)) as file:
        order = np.argsort([packet.pts for packet in file.demux(video=0) if packet.pts is not None])
    data = bytearray(Path(encode_frames(folder / "repeated.vob", _pictures(), "libx264", options=options)).read_bytes())
    repeated = np.arange(FRAMES) % 3 == 0  # in the order of decoding
    _repeat_pictures(data, repeated)
    _without_times(data)
    path = write(folder / "repeated.vob", bytes(data))
    with av.open(path) as file:
        assert sum(frame.pts is None for frame in file.decode(video=0)) > FRAMES // 2
    ends = np.cumsum(np.where(repeated[order], 2, 1)) / 25
    np.testing.assert_allclose(_times(path), [0, *ends[:-1]], atol=1e-9)


def test_times_of_frames_without_times() -> None:
    """After the duration of the frame before; if it states none, after the last known time between two frames."""
    times = FrameTimes(step=3600, second=90_000)
    for pts, duration in ((0, 3600), (None, 5400), (None, 3600), (None, 0), (None, 0), (30_000, 0), (33_000, 0), (None, 7200)):
        times.add(pts, duration)
    assert times.ticks == [0, 3600, 9000, 12_600, 16_200, 30_000, 33_000, 36_000]


def test_times_are_read_without_decoding_where_packets_tell(folder: Path, exact: str, monkeypatch: pytest.MonkeyPatch) -> None:
    varying = (np.arange(FRAMES) ** 1.1 / 25).tolist()
    path = encode_frames(folder / "varying.mkv", _pictures(), "libx264", times=varying)
    monkeypatch.setattr(ContainerFile, "_ticks_by_decoding", lambda _self: pytest.fail("it need not be decoded"))
    np.testing.assert_allclose(_times(path), varying, atol=1e-3)
    np.testing.assert_allclose(_times(exact), np.arange(FRAMES) / 25, atol=1e-9)
