"""Clips of every kind scored in ranges, in any order: the same bytes as in one go, whatever a decoder does after a seek."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from vkssim.frames.decode.clip_decoder import ClipDecoder
from vkssim.frames.decode.decoder import AT_FIRST_KEY, Decoder

from ..frames.encoding import encode_frames, moving_frames, video_frame
from ..frames.reading import open_source, read
from ..support.children import in_child
from ..support.clips import write
from ..support.pictures import clip
from .in_ranges import same_in_ranges, small_ranges

FRAMES = 27
HEIGHT, WIDTH = 64, 96
GOP = 7


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many ranges, and frame threads however few cores there are. Short clips count as long ones that list their packets."""
    small_ranges(monkeypatch)
    monkeypatch.setattr("vkssim.frames.decode.sample_index._FEW_PACKETS", 1)
    monkeypatch.setattr("vkssim.frames.decode.clip_decoder.threads_help", lambda: True)


def _x264(gop: int, *more: str) -> tuple[str, dict[str, str]]:
    return "libx264", {"crf": "30", "x264-params": ":".join((f"keyint={gop}:min-keyint={gop}:scenecut=0", *more))}


def _x265(gop: int, *more: str) -> tuple[str, dict[str, str]]:
    words = f"log-level=none:keyint={gop}:min-keyint={gop}:scenecut=0:bframes=3", *more
    return "libx265", {"crf": "30", "preset": "ultrafast", "x265-params": ":".join(words)}


def _vpx(codec: str) -> tuple[str, dict[str, str]]:
    return codec, {"auto-alt-ref": "1", "lag-in-frames": "12", "g": str(GOP), "b": "150k", "cpu-used": "5"}


OPEN = "open-gop=1", "bframes=4", "b-pyramid=normal"

SMALL = "mpeg4, program stream of small frames"  # several in a packet, so that times are guessed anew after a seek
UNSURE = "mpeg4, program stream"
"""Whether its frames are the same after a seek differs between versions of FFmpeg; where they are not it is one range."""

KINDS: dict[str, tuple[str, str, dict[str, str]]] = {
    "x264 with open GOPs": ("mp4", *_x264(GOP, *OPEN)),
    "x264 with open GOPs, matroska": ("mkv", *_x264(GOP, *OPEN)),
    "x264 with open GOPs, transport stream": ("ts", *_x264(GOP, *OPEN)),
    "x264 with intra refresh": ("mp4", *_x264(GOP, "intra-refresh=1", "bframes=2")),
    "x264 with intra refresh, transport stream": ("ts", *_x264(GOP, "intra-refresh=1", "bframes=2")),
    "x264 interlaced": ("ts", *_x264(GOP, "interlaced=1", "bframes=2")),
    "x265 with open GOPs": ("mkv", *_x265(GOP, "open-gop=1")),
    "x265 with leading frames that decode": ("mp4", *_x265(GOP, "open-gop=0", "radl=2")),
    "vp8 with hidden frames": ("webm", *_vpx("libvpx")),
    "vp9 with hidden frames": ("webm", *_vpx("libvpx-vp9")),
    "av1": ("mkv", "libsvtav1", {"g": str(GOP), "preset": "12", "svtav1-params": "irefresh-type=2"}),
    "mpeg2": ("mpg", "mpeg2video", {"g": str(GOP), "bf": "2"}),
    "mpeg2, transport stream": ("ts", "mpeg2video", {"g": str(GOP), "bf": "2"}),
    UNSURE: ("mpg", "mpeg4", {"g": str(GOP), "qmin": "1", "qmax": "1"}),
    SMALL: ("mpg", "mpeg4", {"g": str(GOP)}),
    "mpeg4": ("mkv", "mpeg4", {"g": str(GOP), "bf": "2"}),
    "mpeg4, transport stream": ("ts", "mpeg4", {"g": str(GOP)}),
    "mjpeg": ("avi", "mjpeg", {"strict": "unofficial"}),
    "ffv1 of key frames": ("avi", "ffv1", {"g": "1"}),
    "ffv1 with others": ("avi", "ffv1", {"g": str(GOP)}),
    "snow": ("nut", "snow", {"g": str(GOP), "strict": "experimental"}),
    "wmv2": ("wmv", "wmv2", {"g": str(GOP)}),
    "flv": ("flv", "flv", {"g": str(GOP)}),
}
FIRST_OF_CONTAINERS = {ending: kind for kind, (ending, *_) in reversed(KINDS.items())}.values()
ALONE: dict[str, tuple[str, str, dict[str, str]]] = {
    "x264 with one key frame": ("mp4", *_x264(1000, "bframes=2")),
    "x264 with B-frames, avi": ("avi", *_x264(GOP, "bframes=3")),
    "x264, elementary stream": ("264", *_x264(GOP, "bframes=3")),
}
"""Of which nobody knows where frames are: of some a range is tried and refused, of others none."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(scope="module")
def other(folder: Path) -> str:
    """A clip with fewer key frames, at other places, and open GOPs."""
    return _encode(folder / "other.mp4", *_x264(10, *OPEN))


def _encode(path: Path, codec: str, options: dict[str, str], **settings: Any) -> str:
    return str(path) if path.exists() else encode_frames(path, moving_frames(FRAMES), codec, options=options, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_clips_of_every_kind_have_the_same_scores_in_ranges(folder: Path, other: str, kind: str) -> None:
    """As the reference, and one clip of each container as the distorted clip: cuts are before key frames of either.

    A metric that compares frames reads one pair before and one after each range too.
    """
    ending, codec, options = KINDS[kind]
    path = _encode(folder / f"{kind}.{ending}", codec, options)
    least = 1 if kind == UNSURE else 2
    assert same_in_ranges(path, other, features=("float_psnr", "motion")) >= least
    if kind in FIRST_OF_CONTAINERS:
        assert same_in_ranges(other, path) >= least


@pytest.mark.parametrize("kind", KINDS)
def test_frames_that_are_gone_to_are_those_of_the_sequence(folder: Path, kind: str) -> None:
    """Also where no range would begin; or their fingerprint tells that they are not."""
    ending, codec, options = KINDS[kind]
    path = _encode(folder / f"{kind}.{ending}", codec, options)
    same = []
    with open_source(path) as source:
        marks = source.seek_index()
        assert marks is not None
        sequence = read(source)
    with open_source(path) as before:  # which reads on
        for number in range(1, FRAMES - 2, 3):
            with open_source(path) as source:
                same.append(
                    source.seek(number, marks.position(number)) == before.verify_boundary(number, marks.position(number - 1))
                )
                if same[-1]:
                    np.testing.assert_array_equal(read(source, range(number, number + 2)), sequence[number : number + 2])
                    source.verify_boundary(number + 2, marks.position(number + 1))
    assert all(same) or kind == SMALL  # whose times depend on the number of threads


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_after_the_last_one_is_read_on(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Its first frame, from which the range before has its fingerprint, is there already; other ranges are sought."""
    ending, codec, options = KINDS[kind]
    path = _encode(folder / f"{kind}.{ending}", codec, options)
    sought, seek = list[int](), Decoder.seek

    def note_seek(self: Decoder, time: int, *where: Any, **how: Any) -> None:
        sought.append(time)
        seek(self, time, *where, **how)

    monkeypatch.setattr(Decoder, "seek", note_seek)
    with open_source(path) as source:
        marks = source.seek_index()
        sequence = read(source)
    assert marks is not None
    with open_source(path) as source:
        np.testing.assert_array_equal(read(source, range(GOP)), sequence[:GOP])
        found = source.verify_boundary(GOP, marks.position(GOP - 1))
        assert source.seek(GOP, marks.position(GOP)) == found
        assert not sought
        np.testing.assert_array_equal(read(source, range(GOP, 2 * GOP)), sequence[GOP : 2 * GOP])
        assert source.times_of(range(GOP - 1, GOP + 1))[0] is None, "a range knows its own times, as after seeking"
        source.verify_boundary(2 * GOP, marks.position(2 * GOP - 1))
        if kind != SMALL:
            source.seek(GOP, marks.position(GOP))
            assert sought
            np.testing.assert_array_equal(read(source, range(GOP, 2 * GOP)), sequence[GOP : 2 * GOP])


@pytest.mark.parametrize("kind", ALONE)
def test_what_cannot_be_read_in_ranges_is_one(folder: Path, other: str, kind: str) -> None:
    ending, codec, options = ALONE[kind]
    assert same_in_ranges(_encode(folder / f"{kind}.{ending}", codec, options), other) == 1


def test_prores_of_two_profiles_is_read_in_ranges(folder: Path) -> None:
    luma = clip(12, HEIGHT, WIDTH, 10)
    chroma = np.full((HEIGHT, WIDTH // 2), 512, np.uint16)
    frames = [video_frame(WIDTH, HEIGHT, "yuv422p10le", [picture, chroma, chroma]) for picture in luma]
    paths = [
        encode_frames(folder / f"{profile}.mov", frames, "prores_ks", options={"profile": profile}) for profile in ("0", "3")
    ]
    assert same_in_ranges(paths[1], paths[0], planes="all") == 4


@pytest.mark.parametrize("options", [{}, {"sync": "pts"}], ids=["index", "pts"])
def test_frames_of_varying_duration_are_read_in_ranges_by_index_alone(
    folder: Path, other: str, options: dict[str, Any]
) -> None:
    times = np.cumsum(np.random.default_rng(3).integers(1, 9, FRAMES)) / 50
    path = _encode(folder / "vfr.mp4", *_x264(GOP, *OPEN), times=times.tolist())
    assert (same_in_ranges(path, path, **options) > 1) == (not options)
    assert (same_in_ranges(path, other, **options) > 1) == (not options)


# -- cut recordings ---------------------------------------------------------------------------------------------------


def _remuxed(source: str, path: Path, *, begin: float = 0, key: bool | None = None, shifts: tuple[int, ...] = (0,)) -> str:
    """The packets of a clip from the key frame before `begin` seconds on; all said to be key frames, or moved by ticks.

    Once for each of `shifts`, one behind the other.
    """
    with av.open(str(path), "w") as new:
        stream: Any = None
        for shift in shifts:
            with av.open(source) as old:
                stream = stream or new.add_stream_from_template(old.streams.video[0])
                old.seek(int(begin * av.time_base))
                for packet in old.demux(old.streams.video[0]):
                    if packet.dts is None:
                        continue
                    packet.stream = stream
                    packet.is_keyframe = packet.is_keyframe or bool(key)
                    assert packet.pts is not None
                    packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                    new.mux(packet)
    return str(path)


def _edited(source: str, path: Path, skip: int) -> str:
    """An mp4 whose edit list leaves out the first `skip` frames, of the 25 that a second has."""
    data = Path(source).read_bytes()
    at = data.index(b"elst")
    assert data[at + 4] == 0, "its version, of numbers of 32 bits"
    begins = int.from_bytes(data[at + 16 : at + 20], "big")
    with av.open(source) as container:
        base = container.streams.video[0].time_base
        assert base is not None
        ticks = round(skip / 25 / base)
    path.write_bytes(data[: at + 16] + (begins + ticks).to_bytes(4, "big") + data[at + 20 :])
    return str(path)


@pytest.mark.parametrize(
    ("kind", "begin", "frames"),
    [
        ("x264 with open GOPs", 0, 2),
        ("x264 with open GOPs", 0.5, 1),  # with pictures that refer to the GOP before
        ("x265 with leading frames that decode", 0, 2),
        ("x265 with leading frames that decode", 0.5, 1),
        ("av1", 0, 2),
        ("vp8 with hidden frames", 0, 2),
        ("ffv1 with others", 0, 1),  # which no hardware decodes
    ],
)
def test_the_first_frame_is_decoded_alone(folder: Path, kind: str, begin: float, frames: int) -> None:
    """Unless another one may be presented before it. It is the frame that is returned first otherwise."""
    ending, codec, options = KINDS[kind]
    path = _encode(folder / f"{kind}.{ending}", codec, options)
    cut = _remuxed(path, folder / f"{kind} from {begin}.mkv", begin=begin) if begin else path
    clip = ClipDecoder(cut, None)
    try:
        found = list(clip.first_frames())
        *_, first = found
        assert len(found) == frames
        assert {frame.pts for frame in found} == {first.pts}
        for frame in found:
            np.testing.assert_array_equal(frame.to_ndarray(), first.to_ndarray())
        begins = clip.decoder.begin
        if frames == 2:
            assert begins == AT_FIRST_KEY
        assert clip.decoder.next().pts > first.pts
    finally:
        clip.close()


def test_a_damaged_first_frame_is_not_decoded_alone(folder: Path) -> None:
    data = bytearray(Path(_encode(folder / "sound.mp4", *_x264(GOP))).read_bytes())
    with av.open(str(folder / "sound.mp4")) as container:
        (first, *_) = container.streams.video[0].index_entries
        end = first.pos + first.size
    data[end - 280 : end] = bytes(280)
    (folder / "damaged.mp4").write_bytes(data)
    clip = ClipDecoder(str(folder / "damaged.mp4"), None)
    try:
        assert len(list(clip.first_frames())) == 1
        assert {(report.pts, report.frames_before) for report in clip.decoder.reports} == {(0, 0)}
    finally:
        clip.close()


def test_a_clip_with_an_edit_list_is_read_in_ranges(folder: Path, other: str) -> None:
    path = _edited(_encode(folder / "whole.mp4", *_x264(GOP, *OPEN)), folder / "edited.mp4", 13)
    with open_source(path) as source:
        assert len(read(source)) < FRAMES
    assert same_in_ranges(path, other) > 1
    assert same_in_ranges(other, path) > 1


def test_a_clip_cut_at_a_key_frame_of_an_open_gop_is_read_in_ranges(folder: Path, other: str) -> None:
    """The frames before it that refer to the GOP before are there, and cannot be decoded."""
    source = _encode(folder / "open.mkv", *_x264(GOP, *OPEN))
    path = _remuxed(source, folder / "cut.mkv", begin=0.5)
    assert same_in_ranges(path, other) > 1
    assert same_in_ranges(other, path) > 1


def test_a_clip_whose_times_begin_below_zero_is_read_in_ranges(folder: Path, other: str) -> None:
    source = _encode(folder / "zero.nut", *_x264(GOP, "bframes=3"))
    path = _remuxed(source, folder / "below.nut", shifts=(-25 * 512,))
    assert same_in_ranges(path, other) > 1


@pytest.mark.parametrize("codec", ["mpeg2video", "libx264"])
def test_a_transport_stream_cut_between_key_frames_is_read_in_ranges(folder: Path, other: str, codec: str) -> None:
    options = {"mpeg2video": {"g": str(GOP), "bf": "2", "b": "2M"}, "libx264": _x264(GOP, *OPEN)[1]}[codec]
    data = Path(_encode(folder / f"{codec}.ts", codec, options)).read_bytes()
    packets = len(data) // 188
    path = write(folder / f"{codec} cut.ts", data[packets // 6 * 188 :])
    assert same_in_ranges(path, other) > 1


def test_a_recording_with_a_gap_is_read_in_ranges(folder: Path) -> None:
    """Behind a gap of time is a second recording."""
    first = _encode(folder / "first.ts", "mpeg2video", {"g": str(GOP), "bf": "2"})
    path = _remuxed(first, folder / "gap.ts", shifts=(0, round((30 + FRAMES / 25) * 90000)))
    assert same_in_ranges(path, path) > 1


@pytest.mark.parametrize("seconds", [30, -0.8], ids=["a gap", "an overlap"])
def test_recordings_put_together_are_one_range(folder: Path, seconds: float) -> None:
    """Where two files were put together FFmpeg takes a packet for lost; or times overlap, so that one is at two places."""
    first = _encode(folder / "first.ts", "mpeg2video", {"g": str(GOP), "bf": "2"})
    shift = round((seconds + FRAMES / 25) * 90000) + (0 if seconds > 0 else 900)
    second = _remuxed(first, folder / "second.ts", shifts=(shift,))
    path = write(folder / f"{seconds}.ts", Path(first).read_bytes() + Path(second).read_bytes())
    assert same_in_ranges(path, path) == 1


def test_a_clip_whose_size_changes_is_one_range(folder: Path) -> None:
    """A problem in the middle is one, with the frames before it."""
    first = _encode(folder / "large.ts", *_x264(GOP, "bframes=2"))
    second = encode_frames(folder / "small.ts", moving_frames(10, 48, 64), "libx264")
    path = write(folder / "sizes.ts", Path(first).read_bytes() + Path(second).read_bytes())
    assert same_in_ranges(path, first) == 1


def test_a_clip_with_two_video_streams_is_read_in_ranges(folder: Path, other: str) -> None:
    path = folder / "two.mkv"
    _encode_two(path)
    assert same_in_ranges(path, other) > 1


@in_child
def _encode_two(path: Path) -> None:
    with av.open(str(path), "w") as container:
        streams: list[Any] = []
        for gop in (GOP, 7):
            codec, options = _x264(gop, *OPEN)
            stream: Any = container.add_stream(codec, rate=25, options=options)
            stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
            streams.append(stream)
        for number, frame in enumerate(moving_frames(FRAMES)):
            for stream in streams:
                frame.pts, frame.time_base = number, Fraction(1, 25)
                container.mux(stream.encode(frame))
        for stream in streams:
            container.mux(stream.encode(None))


# -- packets that lie -------------------------------------------------------------------------------------------------


LYING = {
    "flv": ("flv", {"g": str(GOP)}),
    "mpeg4": ("nut", {"g": str(GOP), "bf": "2"}),
    "mpeg2video": ("mov", {"g": str(GOP)}),
    "svq1": ("mov", {"g": str(GOP)}),
    "libx264": ("flv", _x264(GOP)[1]),
    "libx265": ("mov", _x265(GOP)[1]),
}
REFUSED = "flv", "mpeg4", "libx264"


@pytest.mark.parametrize("codec", LYING)
def test_frames_that_are_no_key_frames_though_they_say_so(folder: Path, codec: str) -> None:
    """Some decoders refuse them, some make up what they refer to and say nothing: ranges then differ where they meet."""
    ending, options = LYING[codec]
    pixel_format = "yuv410p" if codec == "svq1" else "yuv420p"
    frames = [frame.reformat(format=pixel_format) for frame in moving_frames(FRAMES)]
    lying = _remuxed(
        encode_frames(folder / f"honest.{ending}", frames, codec, options=options), folder / f"lying.{ending}", key=True
    )
    exact = encode_frames(folder / "exact.avi", frames, "ffv1", options={"g": "1"})
    for paths in ((lying, exact), (exact, lying)):
        assert (same_in_ranges(*paths) == 1) == (codec in REFUSED)


@pytest.mark.parametrize("codec", ["mpeg2video", "libx264", "libx265", "libvpx-vp9"])
@pytest.mark.parametrize("place", [0.3, 0.6])
def test_damage_changes_no_score_between_ranges(
    folder: Path, monkeypatch: pytest.MonkeyPatch, codec: str, place: float
) -> None:
    """Bytes flipped in the middle: in one range, or in ranges with the same scores. Threads may conceal them in another way."""
    monkeypatch.setattr("vkssim.frames.decode.clip_decoder.threads_help", lambda: False)
    options = {
        "mpeg2video": {"g": str(GOP), "bf": "2"},
        "libx264": _x264(GOP, *OPEN)[1],
        "libx265": _x265(GOP)[1],
        "libvpx-vp9": _vpx("libvpx-vp9")[1],
    }[codec]
    ending = "webm" if codec == "libvpx-vp9" else "ts"
    sound = _encode(folder / f"sound {codec}.{ending}", codec, options)
    data = bytearray(Path(sound).read_bytes())
    begin = int(place * len(data)) // 188 * 188 + 60
    data[begin : begin + 60] = bytes(255 - value for value in data[begin : begin + 60])
    path = write(folder / f"damaged {codec} {place}.{ending}", bytes(data))
    same_in_ranges(path, sound)
    same_in_ranges(sound, path)
