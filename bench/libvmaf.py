"""libvmaf's own float_ms_ssim and vmaf, of both versions, by FFmpeg beside vkssim: the same raw files, in turns, in one run.

Both give the same scores, or the section fails. FFmpeg is found on the PATH or in the package imageio-ffmpeg.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from machine import cores
from measure import in_turns, raw_clips
from spreads import Row, compared

from vkssim import score_files
from vkssim.frames.options import RawDescription
from vkssim.metrics.options import split_feature
from vkssim.metrics.vmaf_model import model_folder

_V1 = "vmaf_v1.0.16_3d0h"
_FILTERS = {
    "float_ms_ssim": "model=:feature=name=float_ms_ssim",
    "vmaf": "model=version=vmaf_v0.6.1",
    f"vmaf=model={_V1}": f"model=path={_V1}.json",
}
"""The filter's options for each feature; an empty model leaves the feature alone to be computed."""

_ROUNDS = 5
_LARGEST_DIFFERENCE = 1.5e-6
"""One in the sixth decimal, and the rounding of libvmaf's output to it."""

Scores = list[float]


def beside(width: int, height: int, frames: int, device: str | None) -> list[Row]:
    """Milliseconds a frame from raw 8-bit files to scores, by the clock and of CPU time: vkssim and libvmaf take turns."""
    program = _ffmpeg()
    if program is None:
        return []
    return [row for feature in _FILTERS for row in _of_feature(feature, program, width, height, frames, device)]


def _of_feature(feature: str, program: str, width: int, height: int, frames: int, device: str | None) -> list[Row]:
    with raw_clips(width, height, 8, frames) as (reference, distorted):
        raw = RawDescription(width, height, "420", 8)
        where = {"section": "libvmaf", "size": f"{width}x{height}", "bits": 8, "feature": feature, "frames": frames}
        where["cores"] = cores()
        metric, _ = split_feature(feature)
        models = model_folder()
        if models is not None:
            shutil.copy(models / f"{_V1}.json", reference.parent)  # a path within a filter has its own rules of quotes

        def ours() -> Scores:
            report = score_files(reference, distorted, features=[feature], raw=raw, device=device)
            return [frame.metrics[metric] or 0.0 for frame in report.frames]

        def theirs() -> Scores:
            return _run(feature, metric, program, width, height, reference, distorted)

        runs: dict[str, Callable[[], Scores]] = {"vkssim": ours, "libvmaf by FFmpeg": theirs}
        scores = [run() for run in runs.values()]
        difference = max(abs(first - second) for first, second in zip(*scores, strict=True))
        if difference > _LARGEST_DIFFERENCE:
            raise ValueError(
                f"the scores differ by up to {difference:g}; {_LARGEST_DIFFERENCE:g} is the most that rounding makes"
            )
        turns = in_turns({name: (frames, run) for name, run in runs.items()}, _ROUNDS)
    rows = []
    for kind, of_kind in turns.items():
        ours_row, theirs_row = of_kind.values()
        rows += [{**where, "name": f"{name}, {feature}, {kind}", **row} for name, row in of_kind.items()]
        ratio = compared(theirs_row, ours_row, "times as long")
        rows.append({**where, "name": f"libvmaf against vkssim, {feature}, {kind}", **ratio})
    return rows


def _ffmpeg() -> str | None:
    """Return an FFmpeg with the filter libvmaf; None if the machine has none."""
    found = [shutil.which("ffmpeg")]
    try:
        import imageio_ffmpeg

        found.append(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        pass
    for program in filter(None, found):
        filters = subprocess.run([program, "-hide_banner", "-filters"], capture_output=True, text=True, check=False).stdout
        if " libvmaf " in filters:
            return program
    return None


def _run(feature: str, metric: str, program: str, width: int, height: int, reference: Path, distorted: Path) -> Scores:
    """Return libvmaf's scores."""
    log = reference.with_name("libvmaf.json")
    raw = ("-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", f"{width}x{height}", "-i")
    options = f"{_FILTERS[feature]}:n_threads={cores()}:log_fmt=json:log_path={log.name}"
    command = [program, "-nostdin", "-loglevel", "error", *raw, str(distorted), *raw, str(reference)]
    subprocess.run([*command, "-lavfi", f"[0:v][1:v]libvmaf={options}", "-f", "null", "-"], cwd=log.parent, check=True)
    frames = json.loads(log.read_text(encoding="utf-8"))["frames"]
    return [float(frame["metrics"][metric]) for frame in frames]
