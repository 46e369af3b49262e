"""Small clips of many codecs and of each what decoders have trouble with: one table, and what writes its files.

They are for comparing decoders (tools/compare_decoders). The pictures are the same on every machine, and encoders work in one
thread, so that they write the same bytes every time; another version of an encoder writes others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .clip import DAMAGE, RATE, CodedClip, Damaged, Encoded, FieldCoded, Joined, Stored


def _encoded(encoder: str, name: str, stresses: str, options: Mapping[str, str] | None = None, **facts: Any) -> Encoded:
    return Encoded(name=name, stresses=stresses, encoder=encoder, options=options or {}, **facts)


def _h264(name: str, stresses: str, params: str, options: Mapping[str, str] | None = None, **facts: Any) -> Encoded:
    """Describe H.264; x264 writes other bytes now and then with mbtree and threads of its lookahead."""
    every = f"mbtree=0:lookahead-threads=1:{params}"
    return _encoded("libx264", name, stresses, {"g": "24", **(options or {}), "x264-params": every}, **facts)


def _hevc(name: str, stresses: str, params: str, **facts: Any) -> Encoded:
    every = f"log-level=none:pools=1:frame-threads=1:keyint=24:{params}"
    return _encoded("libx265", name, stresses, {"x265-params": every}, **facts)


def _uneven(frames: int) -> tuple[float, ...]:
    """Return times of a variable frame rate: 25 frames a second, of which every fifth is late and every eleventh waits."""
    waits = np.cumsum([0.2 if number % 11 == 10 else 0.04 for number in range(frames)]) - 0.04
    return tuple(float(round(wait + (0.013 if number % 5 == 3 else 0), 3)) for number, wait in enumerate(waits))


_INTERLACED = {"flags": "+ildct+ilme"}
_LARGE: dict[str, Any] = {"width": 640, "height": 360, "frames": 16}
_B = "bframes=3:b-adapt=0"

H264 = [
    _h264("h264_baseline.mp4", "baseline profile, no B-frames", "bframes=0", {"profile": "baseline"}),
    _h264("h264_main.mp4", "main profile with B-frames", _B, {"profile": "main"}),
    _h264(
        "h264_pyramid.mkv", "high profile, pyramid of B-frames, many references", "bframes=7:b-adapt=0:b-pyramid=normal:ref=8"
    ),
    _h264("h264_open_gop.ts", "open groups of pictures", f"{_B}:open-gop=1:keyint=12"),
    _h264("h264_refresh.mkv", "intra refresh in place of key frames", "bframes=0:intra-refresh=1"),
    _h264(
        "h264_mbaff_top.mp4", "interlaced by macroblock (MBAFF), top field first", f"{_B}:tff=1", _INTERLACED, field_order="top"
    ),
    _h264(
        "h264_mbaff_bottom.ts",
        "interlaced by macroblock (MBAFF), bottom field first",
        f"{_B}:bff=1",
        _INTERLACED,
        field_order="bottom",
    ),
    _h264("h264_fake_interlaced.mkv", "progressive pictures that are marked as interlaced ones", f"{_B}:fake-interlaced=1"),
    FieldCoded(
        name="h264_fields.mp4",
        stresses="fields coded one by one (PAFF), a packet each",
        width=128,
        height=96,
        frames=24,
        field_order="top",
    ),
    _h264("h264_cropped.mp4", "size that the SPS crops", _B, width=198, height=154),
    _h264("h264_vfr.mkv", "variable frame rate", _B, times=_uneven(48)),
    _h264("h264_long.mp4", "one group of 90 pictures", f"{_B}:keyint=infinite:scenecut=0", {"g": "300"}, frames=90),
    _h264("h264_slices.ts", "eight slices a picture", f"{_B}:slices=8"),
    _h264("h264_lossless.mkv", "lossless (High 4:4:4 Predictive, CPU)", "bframes=0", {"crf": "-1", "qp": "0"}),
    _h264("h264_full_range.mp4", "full range", _B, pixel_format="yuvj420p"),
    _h264("h264_422.mkv", "4:2:2 (CPU)", _B, pixel_format="yuv422p"),
    _h264("h264_444.mkv", "4:4:4 (CPU)", _B, pixel_format="yuv444p"),
    _h264("h264_gray.mkv", "no chroma", _B, pixel_format="gray"),
    _h264("h264_high10.mp4", "High 10 (CPU)", _B, pixel_format="yuv420p10le"),
    _h264("h264_cavlc.h264", "CAVLC, elementary stream", f"{_B}:cabac=0"),
    _h264("h264_constrained.ts", "constrained intra prediction", f"{_B}:constrained-intra=1"),
    _h264("h264_weighted.mkv", "weighted prediction", f"{_B}:weightp=2:weightb=1"),
    _h264("h264_intra.mov", "key frames alone", "bframes=0:keyint=1"),
    _h264(
        "h264_edit_list.mp4",
        "edit list that hides five frames",
        "bframes=0",
        frames=43,
        hidden=5,
        times=tuple((n - 5) / RATE for n in range(48)),
    ),
    _h264("h264_rotated.mp4", "display matrix that turns the picture round", _B, rotation=180),
    _h264("h264_360p.mp4", "640×360, cropped from 368 rows", _B, **_LARGE),
]
HEVC = [
    _hevc("hevc_main.mp4", "main profile with B-frames", _B),
    _hevc("hevc_main10.mp4", "main 10 profile", _B, pixel_format="yuv420p10le"),
    _hevc("hevc_open_gop.ts", "open groups of pictures", f"{_B}:open-gop=1:keyint=12"),
    _hevc(
        "hevc_pyramid.mkv",
        "pyramid of B-frames, many references",
        "bframes=7:b-adapt=0:b-pyramid=1:ref=5:open-gop=0:rc-lookahead=20",
    ),
    _hevc("hevc_wavefront.mkv", "wavefronts", f"wpp=1:{_B}"),
    _hevc("hevc_slices.hevc", "three slices a picture, elementary stream", "slices=3:wpp=1:bframes=0"),
    _hevc("hevc_cropped.mp4", "size that the SPS crops", _B, width=198, height=154),
    _hevc("hevc_vfr.mkv", "variable frame rate", _B, times=_uneven(48)),
    _hevc("hevc_422_10.mkv", "4:2:2 of 10 bits", _B, pixel_format="yuv422p10le"),
    _hevc("hevc_422_12.mkv", "4:2:2 of 12 bits", _B, pixel_format="yuv422p12le"),
    _hevc("hevc_main12.mkv", "4:2:0 of 12 bits", _B, pixel_format="yuv420p12le"),
    _hevc("hevc_444.mkv", "4:4:4", _B, pixel_format="yuv444p"),
    _hevc("hevc_lossless.mkv", "lossless", f"lossless=1:{_B}"),
    _hevc("hevc_full_range.mp4", "full range", "range=full:bframes=0", pixel_format="yuvj420p"),
    _hevc("hevc_refresh.ts", "intra refresh in place of key frames", "intra-refresh=1:bframes=0"),
]
VP9 = [
    _encoded("libvpx-vp9", "vp9.webm", "profile 0"),
    Stored(name="vp9_alt_ref.webm", stresses="frames that are not shown (alternate references)", stored="bbb_192x160_vp9.webm"),
    Stored(
        name="vp9_10bit.webm",
        stresses="profile 2, 10 bits, frames that are not shown",
        stored="bbb_192x160_vp9_10bit.webm",
        pixel_format="yuv420p10le",
    ),
    _encoded("libvpx-vp9", "vp9_odd.webm", "odd width and height", width=197, height=155),
    _encoded("libvpx-vp9", "vp9_tiles.mkv", "two tiles, rows side by side", {"row-mt": "1", "tile-columns": "1"}, **_LARGE),
    _encoded("libvpx-vp9", "vp9_lossless.mkv", "lossless", {"lossless": "1"}),
    _encoded("libvpx-vp9", "vp9_444.mkv", "profile 1, 4:4:4 (CPU)", pixel_format="yuv444p"),
    _encoded("libvpx-vp9", "vp9_resilient.webm", "error resilient, no frame contexts", {"error-resilient": "default"}),
]
OTHERS = [
    _encoded("libvpx", "vp8.webm", "VP8"),
    Stored(
        name="vp8_alt_ref.webm",
        stresses="VP8 with frames that are not shown (alternate references)",
        stored="bbb_192x160_vp8.webm",
    ),
    _encoded("libsvtav1", "av1.mp4", "AV1 main profile, 8 bits"),
    _encoded("libsvtav1", "av1_10bit.mkv", "AV1 main profile, 10 bits", pixel_format="yuv420p10le"),
    _encoded("libsvtav1", "av1_grain.mp4", "AV1 with film grain", {"svtav1-params": "lp=1:film-grain=20"}),
    _encoded("libsvtav1", "av1_tiles.mkv", "AV1 with two tiles", {"svtav1-params": "lp=1:tile-columns=1"}, **_LARGE),
    _encoded("mpeg2video", "mpeg2.ts", "MPEG-2 with B-frames", {"bf": "2"}),
    _encoded("mpeg2video", "mpeg2_interlaced.ts", "MPEG-2, interlaced", {**_INTERLACED, "bf": "2"}, field_order="top"),
    _encoded("mpeg2video", "mpeg2_422.ts", "MPEG-2, 4:2:2 (CPU)", pixel_format="yuv422p"),
    _encoded("mpeg4", "mpeg4.avi", "MPEG-4 part 2, simple profile"),
    _encoded("mpeg4", "mpeg4_b.mkv", "MPEG-4 part 2 with B-frames and quarter samples", {"bf": "2", "flags": "+qpel"}),
    _encoded("mpeg4", "mpeg4_interlaced.mp4", "MPEG-4 part 2, interlaced", dict(_INTERLACED), field_order="top"),
    _encoded("mjpeg", "mjpeg.avi", "Motion JPEG, full range", pixel_format="yuvj420p"),
]


def _joined(name: str, stresses: str, first: Encoded, second: Encoded) -> Joined:
    return Joined(
        name=name,
        stresses=stresses,
        frames=first.frames + second.frames,
        pixel_format=first.pixel_format,
        width=first.width,
        height=first.height,
        parts=(first, second),
    )


def _part(name: str, **facts: Any) -> Encoded:
    """Return a part of a clip that changes; a closed group of pictures separates it from the next part."""
    ending = Path(name).suffix
    if ending in (".webm", ".mkv"):
        return _encoded("libvpx-vp9", name, "", frames=24, **facts)
    if ending == ".hevc":
        return _hevc(name, "", f"{_B}:open-gop=0", frames=24, **facts)
    return _h264(name, "", _B, frames=24, **facts)


JOINED = [
    _joined("h264_new_size.h264", "the size changes on the way", _part("a.h264"), _part("b.h264", width=256, height=144)),
    _joined("h264_new_size.ts", "the size changes on the way", _part("a.ts"), _part("b.ts", width=256, height=144)),
    _joined("h264_new_depth.h264", "8 bits change to 10", _part("a.h264"), _part("b.h264", pixel_format="yuv420p10le")),
    _joined("h264_new_chroma.h264", "4:2:0 changes to 4:2:2", _part("a.h264"), _part("b.h264", pixel_format="yuv422p")),
    _joined("hevc_new_size.hevc", "the size changes on the way", _part("a.hevc"), _part("b.hevc", width=256, height=144)),
    _joined("hevc_new_depth.hevc", "8 bits change to 10", _part("a.hevc"), _part("b.hevc", pixel_format="yuv420p10le")),
    _joined("vp9_new_size.webm", "the size changes on the way", _part("a.webm"), _part("b.webm", width=256, height=144)),
]
SOUND: list[CodedClip] = [*H264, *HEVC, *VP9, *OTHERS, *JOINED]


def shortened(clips: Sequence[CodedClip], frames: int) -> list[CodedClip]:
    """Return clips of which those that encode their own pictures have no more frames than this."""
    return [replace(clip, frames=min(clip.frames, frames)) if isinstance(clip, Encoded) else clip for clip in clips]


def _damaged(of: str) -> list[Damaged]:
    sound = next(clip for clip in SOUND if clip.name == of)
    path = Path(of)
    return [
        Damaged(
            name=f"{path.stem}_{kind}{path.suffix}",
            stresses=f"damage: {what}",
            of=sound,
            kind=kind,
            frames=sound.frames,
            pixel_format=sound.pixel_format,
        )
        for kind, what in DAMAGE.items()
    ]


DAMAGED = [clip for of in ("h264_pyramid.mkv", "hevc_pyramid.mkv", "vp9.webm") for clip in _damaged(of)]
CLIPS: list[CodedClip] = [*SOUND, *DAMAGED]
"""The corpus."""
