"""What a user would pick instead, measured beside vkssim in the same run: benchmark extras, never dependencies.

Their MS-SSIM has a cheaper pyramid (2x2 means) and gives other numbers; what is compared is time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from machine import cores
from measure import pairs
from spreads import Row, compared, measured

from vkssim import Scorer

_ROUNDS = 7


def side_by_side(width: int, height: int, device: str | None) -> list[Row]:
    """Milliseconds a frame of 8-bit MS-SSIM on the CPU, frames in host memory: vkssim and its peers take turns."""
    references, distorted = pairs(width, height, 8)
    frames = len(references)
    contenders: dict[str, Callable[[], object]] = {}
    with Scorer(width, height, bits=8, features=["float_ms_ssim"], device=device) as scorer:
        feed = list(zip(references, distorted, strict=True))
        contenders["vkssim float_ms_ssim"] = lambda: list(scorer.score(feed))
        contenders.update(_cpu_peers(references, distorted))
        for run in contenders.values():
            run()
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(_ROUNDS):
            for name, run in contenders.items():
                began = time.perf_counter()
                run()
                times[name].append((time.perf_counter() - began) / frames * 1e3)
        where = {"section": "peers, CPU", "size": f"{width}x{height}", "bits": 8, "on": scorer.info.device, "cores": cores()}
    rows = [{**where, "name": name, **measured(values), "unit": "ms a frame"} for name, values in times.items()]
    ours, *theirs = rows
    unit = "of its time"
    return rows + [{**where, "name": f"vkssim against {row['name']}", **compared(ours, row, unit)} for row in theirs]


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _cpu_peers(references: list[Any], distorted: list[Any]) -> dict[str, Callable[[], object]]:
    torch = _torch()
    if torch is None:
        return {}
    torch.set_num_threads(cores())
    stacks = [torch.from_numpy(np.stack(frames))[:, None] for frames in (references, distorted)]
    return {name: _each(function, stacks) for name, function in _metrics(torch).items()}


def _each(function: Callable[[Any, Any], object], stacks: list[Any]) -> Callable[[], object]:
    return lambda: [function(first[None], second[None]) for first, second in zip(*stacks, strict=True)]


def _metrics(torch: Any) -> dict[str, Callable[[Any, Any], object]]:
    found: dict[str, Callable[[Any, Any], object]] = {}
    try:
        import frame_analytics

        found["frame-analytics ms_ssim"] = lambda first, second: frame_analytics.ms_ssim(first, second, data_range=255)
    except ImportError:
        pass
    try:
        import pytorch_msssim

        found["pytorch-msssim ms_ssim"] = lambda first, second: pytorch_msssim.ms_ssim(
            first.float(), second.float(), data_range=255
        )
    except ImportError:
        pass

    def without_gradients(function: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
        def call(first: Any, second: Any) -> object:
            with torch.no_grad():
                return function(first, second)

        return call

    return {name: without_gradients(function) for name, function in found.items()}


def cuda(width: int, height: int, batch: int = 8) -> list[Row]:
    """Microseconds a frame of the peers' kernels on a CUDA device, 8-bit frames on the device, by CUDA events."""
    torch = _torch()
    if torch is None or not torch.cuda.is_available():
        return []
    stacks = [torch.from_numpy(np.stack(frames[:batch]))[:, None].cuda() for frames in pairs(width, height, 8)]
    rows = []
    for name, function in _metrics(torch).items():
        for _ in range(5):
            function(*stacks)
        times = []
        for _ in range(20):
            began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            began.record()
            function(*stacks)
            ended.record()
            torch.cuda.synchronize()
            times.append(began.elapsed_time(ended) / batch * 1e3)
        row = {"section": "peers, CUDA", "size": f"{width}x{height}", "bits": 8, "name": name, "batch": batch}
        rows.append({**row, **measured(times), "unit": "us a frame"})
    return rows
