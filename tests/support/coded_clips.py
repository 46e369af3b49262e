"""Small clips of many codecs and of each what decoders have trouble with: one table, and what writes its files.

They are for comparing decoders (tools/compare_decoders). The pictures are the same on every machine, and encoders work in one
thread, so that they write the same bytes every time; another version of an encoder writes others.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .coded_clip import DAMAGE, RATE, CodedClip, Damaged, Encoded, FieldCoded, Joined, Stored

_CODECS = {
    "libx264": "h264",
    "libx265": "hevc",
    "libvpx": "vp8",
    "libvpx-vp9": "vp9",
    "libsvtav1": "av1",
    "mpeg2video": "mpeg2video",
    "mpeg4": "mpeg4",
    "mjpeg": "mjpeg",
}
"""The codec of each encoder, by FFmpeg's name of its decoder."""


def _encoded(encoder: str, name: str, stresses: str, options: Mapping[str, str] | None = None, **facts: Any) -> Encoded:
    options = options or {}
    facts = {"reordered": "bf" in options, **facts}
    return Encoded(name=name, stresses=stresses, codec=_CODECS[encoder], encoder=encoder, options=options, **facts)


def _stored(stored: str, codec: str, name: str, stresses: str, headers: Mapping[str, int], **facts: Any) -> Stored:
    return Stored(name=name, stresses=stresses, codec=codec, stored=stored, headers=headers, **facts)


def _h264(name: str, stresses: str, params: str, options: Mapping[str, str] | None = None, **facts: Any) -> Encoded:
    """Describe H.264; x264 writes other bytes now and then with mbtree and threads of its lookahead."""
    every = f"mbtree=0:lookahead-threads=1:{params}"
    facts["reordered"] = "bframes=0" not in params
    return _encoded("libx264", name, stresses, {"g": "24", **(options or {}), "x264-params": every}, **facts)


def _hevc(name: str, stresses: str, params: str, **facts: Any) -> Encoded:
    every = f"log-level=none:pools=1:frame-threads=1:keyint=24:{params}"
    facts["reordered"] = "bframes=0" not in params
    return _encoded("libx265", name, stresses, {"x265-params": every}, **facts)


def _uneven(frames: int) -> tuple[float, ...]:
    """Return times of a variable frame rate: 25 frames a second, of which every fifth is late and every eleventh waits."""
    waits = np.cumsum([0.2 if number % 11 == 10 else 0.04 for number in range(frames)]) - 0.04
    return tuple(float(round(wait + (0.013 if number % 5 == 3 else 0), 3)) for number, wait in enumerate(waits))


_INTERLACED = {"flags": "+ildct+ilme"}
_B = "bframes=3:b-adapt=0"

H264 = [
    _h264(
        "h264_baseline.mp4", "baseline profile, no B-frames", "bframes=0", {"profile": "baseline"}, headers={"profile_idc": 66}
    ),
    _h264("h264_main.mp4", "main profile with B-frames", _B, {"profile": "main"}, headers={"profile_idc": 77}),
    _h264(
        "h264_pyramid.mkv",
        "high profile, pyramid of B-frames, many references",
        "bframes=7:b-adapt=0:b-pyramid=normal:ref=8",
        headers={"max_num_ref_frames": 8, "profile_idc": 100},
    ),
    _h264("h264_open_gop.ts", "open groups of pictures", f"{_B}:open-gop=1:keyint=12", headers={"recovery_frame_cnt": 0}),
    _h264(
        "h264_refresh.mkv",
        "intra refresh in place of key frames",
        "bframes=0:intra-refresh=1",
        headers={"recovery_frame_cnt": 10},
    ),
    _h264(
        "h264_mbaff_top.mp4",
        "interlaced by macroblock (MBAFF), top field first",
        f"{_B}:tff=1",
        _INTERLACED,
        field_order="top",
        headers={"mb_adaptive_frame_field_flag": 1, "pic_struct": 3},
    ),
    _h264(
        "h264_mbaff_bottom.ts",
        "interlaced by macroblock (MBAFF), bottom field first",
        f"{_B}:bff=1",
        _INTERLACED,
        field_order="bottom",
        headers={"mb_adaptive_frame_field_flag": 1, "pic_struct": 4},
    ),
    _h264(
        "h264_fake_interlaced.mkv",
        "progressive pictures that are marked as interlaced ones",
        f"{_B}:fake-interlaced=1",
        headers={"frame_mbs_only_flag": 0},
    ),
    FieldCoded(
        name="h264_fields.mp4",
        stresses="fields coded one by one (PAFF), a packet each",
        codec="h264",
        width=128,
        height=96,
        field_order="top",
        packets=96,
        headers={"field_pic_flag": 1, "bottom_field_flag": 1},
    ),
    _h264("h264_cropped.mp4", "size that the SPS crops", _B, width=198, height=154, headers={"frame_cropping_flag": 1}),
    _h264("h264_vfr.mkv", "variable frame rate", _B, times=_uneven(48)),
    _h264("h264_long.mp4", "one group of 90 pictures", f"{_B}:keyint=infinite:scenecut=0", {"g": "300"}, frames=90),
    _h264("h264_slices.ts", "eight slices a picture", f"{_B}:slices=8", headers={"first_mb_in_slice": 108}),
    _h264(
        "h264_lossless.mkv",
        "lossless (High 4:4:4 Predictive, CPU)",
        "bframes=0",
        {"crf": "-1", "qp": "0"},
        headers={"profile_idc": 244},
    ),
    _h264("h264_full_range.mp4", "full range", _B, pixel_format="yuvj420p", headers={"video_full_range_flag": 1}),
    _h264("h264_422.mkv", "4:2:2 (CPU)", _B, pixel_format="yuv422p", headers={"chroma_format_idc": 2}),
    _h264("h264_444.mkv", "4:4:4 (CPU)", _B, pixel_format="yuv444p", headers={"chroma_format_idc": 3}),
    _h264("h264_gray.mkv", "no chroma", _B, pixel_format="gray", headers={"chroma_format_idc": 0}),
    _h264(
        "h264_high10.mp4",
        "High 10 (CPU)",
        _B,
        pixel_format="yuv420p10le",
        headers={"bit_depth_luma_minus8": 2, "profile_idc": 110},
    ),
    _h264("h264_cavlc.h264", "CAVLC, elementary stream", f"{_B}:cabac=0", headers={"entropy_coding_mode_flag": 0}),
    _h264(
        "h264_constrained.ts",
        "constrained intra prediction",
        f"{_B}:constrained-intra=1",
        headers={"constrained_intra_pred_flag": 1},
    ),
    _h264("h264_weighted.mkv", "weighted prediction", f"{_B}:weightp=2:weightb=1", headers={"weighted_bipred_idc": 2}),
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
    _h264("h264_360p.mp4", "640×360, cropped from 368 rows", _B, width=640, height=360, frames=40),
]
HEVC = [
    _hevc("hevc_main.mp4", "main profile with B-frames", _B, headers={"general_profile_idc": 1}),
    _hevc(
        "hevc_main10.mp4",
        "main 10 profile",
        _B,
        pixel_format="yuv420p10le",
        headers={"general_profile_idc": 2, "bit_depth_luma_minus8": 2},
    ),
    _hevc("hevc_open_gop.ts", "open groups of pictures", f"{_B}:open-gop=1:keyint=12", headers={"nal_unit_type": 21}),
    _hevc(
        "hevc_pyramid.mkv",
        "pyramid of B-frames, many references",
        "bframes=7:b-adapt=0:b-pyramid=1:ref=5:open-gop=0:rc-lookahead=20",
        headers={"sps_max_dec_pic_buffering_minus1[0]": 5},
    ),
    _hevc("hevc_wavefront.mkv", "wavefronts", f"wpp=1:{_B}", headers={"entropy_coding_sync_enabled_flag": 1}),
    _hevc(
        "hevc_slices.hevc",
        "three slices a picture, elementary stream",
        "slices=3:wpp=1:bframes=0",
        headers={"first_slice_segment_in_pic_flag": 0},
    ),
    _hevc("hevc_cropped.mp4", "size that the SPS crops", _B, width=198, height=154, headers={"conformance_window_flag": 1}),
    _hevc("hevc_vfr.mkv", "variable frame rate", _B, times=_uneven(48)),
    _hevc("hevc_422_10.mkv", "4:2:2 of 10 bits", _B, pixel_format="yuv422p10le", headers={"chroma_format_idc": 2}),
    _hevc("hevc_422_12.mkv", "4:2:2 of 12 bits", _B, pixel_format="yuv422p12le", headers={"bit_depth_luma_minus8": 4}),
    _hevc("hevc_main12.mkv", "4:2:0 of 12 bits", _B, pixel_format="yuv420p12le", headers={"bit_depth_luma_minus8": 4}),
    _hevc("hevc_444.mkv", "4:4:4", _B, pixel_format="yuv444p", headers={"chroma_format_idc": 3}),
    _hevc("hevc_lossless.mkv", "lossless", f"lossless=1:{_B}", headers={"transquant_bypass_enabled_flag": 1}),
    _hevc(
        "hevc_full_range.mp4",
        "full range",
        "range=full:bframes=0",
        pixel_format="yuvj420p",
        headers={"video_full_range_flag": 1},
    ),
    _hevc("hevc_refresh.ts", "intra refresh in place of key frames", "intra-refresh=1:bframes=0"),
]
VP9 = [
    _encoded("libvpx-vp9", "vp9.webm", "profile 0", {"lag-in-frames": "0"}, headers={"profile_low_bit": 0}),
    _stored(
        "bbb_192x160_vp9.webm", "vp9", "vp9_alt_ref.webm", "frames that are not shown (alternate references)", {"show_frame": 0}
    ),
    _stored(
        "bbb_192x160_vp9_10bit.webm",
        "vp9",
        "vp9_10bit.webm",
        "profile 2, 10 bits, frames that are not shown",
        {"profile_high_bit": 1, "show_frame": 0},
        pixel_format="yuv420p10le",
    ),
    _encoded("libvpx-vp9", "vp9_odd.webm", "odd width and height", {"lag-in-frames": "0"}, width=197, height=155),
    _encoded(
        "libvpx-vp9",
        "vp9_tiles.mkv",
        "two tiles, rows side by side",
        {"row-mt": "1", "tile-columns": "1", "lag-in-frames": "0"},
        width=640,
        height=360,
        frames=40,
        headers={"tile_cols_log2": 1},
    ),
    _encoded("libvpx-vp9", "vp9_lossless.mkv", "lossless", {"lossless": "1", "lag-in-frames": "0"}, headers={"base_q_idx": 0}),
    _encoded(
        "libvpx-vp9",
        "vp9_444.mkv",
        "profile 1, 4:4:4 (CPU)",
        {"lag-in-frames": "0"},
        pixel_format="yuv444p",
        headers={"profile_low_bit": 1},
    ),
    _encoded(
        "libvpx-vp9",
        "vp9_resilient.webm",
        "error resilient, no frame contexts",
        {"error-resilient": "default", "lag-in-frames": "0"},
        headers={"error_resilient_mode": 1},
    ),
]
OTHERS = [
    _encoded("libvpx", "vp8.webm", "VP8", {"lag-in-frames": "0"}),
    _stored(
        "bbb_192x160_vp8.webm",
        "vp8",
        "vp8_alt_ref.webm",
        "VP8 with frames that are not shown (alternate references)",
        {},
        packets=50,
    ),
    _encoded(
        "libsvtav1",
        "av1.mp4",
        "AV1 main profile, 8 bits",
        {"svtav1-params": "lp=1"},
        headers={"seq_profile": 0, "show_existing_frame": 1},
    ),
    _encoded(
        "libsvtav1",
        "av1_10bit.mkv",
        "AV1 main profile, 10 bits",
        {"svtav1-params": "lp=1"},
        pixel_format="yuv420p10le",
        headers={"high_bitdepth": 1},
    ),
    _encoded(
        "libsvtav1", "av1_grain.mp4", "AV1 with film grain", {"svtav1-params": "lp=1:film-grain=20"}, headers={"apply_grain": 1}
    ),
    _encoded(
        "libsvtav1",
        "av1_tiles.mkv",
        "AV1 with two tiles",
        {"svtav1-params": "lp=1:tile-columns=1"},
        width=640,
        height=360,
        frames=40,
        headers={"tile_cols_log2": 1},
    ),
    _encoded("mpeg2video", "mpeg2.ts", "MPEG-2 with B-frames", {"bf": "2"}),
    _encoded(
        "mpeg2video",
        "mpeg2_interlaced.ts",
        "MPEG-2, interlaced",
        {**_INTERLACED, "bf": "2"},
        field_order="top",
        headers={"progressive_sequence": 0, "top_field_first": 1},
    ),
    _encoded("mpeg2video", "mpeg2_422.ts", "MPEG-2, 4:2:2 (CPU)", {}, pixel_format="yuv422p", headers={"chroma_format": 2}),
    _encoded("mpeg4", "mpeg4.avi", "MPEG-4 part 2, simple profile", {}),
    _encoded("mpeg4", "mpeg4_b.mkv", "MPEG-4 part 2 with B-frames and quarter samples", {"bf": "2", "flags": "+qpel"}),
    _encoded("mpeg4", "mpeg4_interlaced.mp4", "MPEG-4 part 2, interlaced", dict(_INTERLACED), field_order="top"),
    _encoded("mjpeg", "mjpeg.avi", "Motion JPEG, full range", {}, pixel_format="yuvj420p"),
]


def _joined(name: str, stresses: str, first: Encoded, second: Encoded) -> Joined:
    return Joined(
        name=name,
        stresses=stresses,
        codec=first.codec,
        frames=first.frames + second.frames,
        pixel_format=first.pixel_format,
        width=first.width,
        height=first.height,
        reordered=first.reordered,
        parts=(first, second),
    )


def _part(name: str, **facts: Any) -> Encoded:
    """Return a part of a clip that changes; a closed group of pictures separates it from the next part."""
    ending = Path(name).suffix
    if ending in (".webm", ".mkv"):
        return _encoded("libvpx-vp9", name, "", {"lag-in-frames": "0"}, frames=24, **facts)
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


def _damaged(of: str) -> list[Damaged]:
    sound = next(clip for clip in SOUND if clip.name == of)
    path = Path(of)
    return [
        Damaged(
            name=f"{path.stem}_{kind}{path.suffix}",
            stresses=f"damage: {what}",
            codec=sound.codec,
            of=sound,
            kind=kind,
            frames=sound.frames,
            pixel_format=sound.pixel_format,
            reordered=sound.reordered,
        )
        for kind, what in DAMAGE.items()
    ]


DAMAGED = [clip for of in ("h264_pyramid.mkv", "hevc_pyramid.mkv", "vp9.webm") for clip in _damaged(of)]
CLIPS: list[CodedClip] = [*SOUND, *DAMAGED]
"""The corpus."""
