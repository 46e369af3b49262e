"""The packages that a user would pick instead, measured beside vkssim in the same run: benchmark extras, never dependencies.

Their MS-SSIM has a cheaper pyramid (2x2 means) and gives other numbers; only time is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import cores
from measure import Contender, in_turns, pairs, raw_clips
from spreads import Row, compared, measured

from vkssim import Scorer, score_files
from vkssim.frames.options import RawDescription

Picture = npt.NDArray[Any]

_FEATURES = ("float_ms_ssim", "float_ms_ssim=precision=fast")
_ROUNDS = 7


def side_by_side(width: int, height: int, frames: int, device: str | None) -> list[Row]:
    """Return milliseconds a frame of 8-bit MS-SSIM on the CPU, by the clock and of CPU time: vkssim and its peers take turns.

    vkssim scores raw files of `frames` frames, with opening, and frames in memory; the peers have only the latter.
    """
    references, distorted = pairs(width, height, 8)
    count = len(references)
    raw = RawDescription(width, height, "420", 8)
    contenders: dict[str, Contender] = {}
    with ExitStack() as stack:
        clips = stack.enter_context(raw_clips(width, height, 8, frames))
        for feature in _FEATURES:
            scorer = stack.enter_context(Scorer(width, height, bits=8, features=[feature], device=device))
            contenders[f"{feature}, raw files"] = (
                frames,
                partial(score_files, *clips, features=[feature], raw=raw, device=device),
            )
            contenders[f"{feature}, arrays"] = count, partial(_scored, scorer, list(zip(references, distorted, strict=True)))
        peers = {name: (count, run) for name, run in _cpu_peers(references, distorted).items()}
        contenders.update(peers)
        for _, run in contenders.values():
            run()
        turns = in_turns(contenders, _ROUNDS)
        where = {"section": "peers, CPU", "size": f"{width}x{height}", "bits": 8, "on": scorer.info.device, "cores": cores()}
    rows = []
    for kind, of_kind in turns.items():
        rows += [{**where, "name": f"{name}, {kind}", **row} for name, row in of_kind.items()]
        for peer in peers:
            for name, row in of_kind.items():
                if name not in peers:
                    ratio = compared(row, of_kind[peer], "of its time")
                    rows.append({**where, "name": f"{name} against {peer}, {kind}", **ratio})
    return rows


def _scored(scorer: Scorer, feed: Sequence[tuple[Picture, Picture]]) -> None:
    for _ in scorer.score(feed):
        pass


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
    """Return MS-SSIM of the installed peers by their names, without gradients."""
    found: dict[str, Callable[[Any, Any], object]] = {}
    with suppress(ImportError):
        import frame_analytics

        found["frame-analytics ms_ssim"] = partial(frame_analytics.ms_ssim, data_range=255)
    with suppress(ImportError):
        import pytorch_msssim

        found["pytorch-msssim ms_ssim"] = lambda first, second: pytorch_msssim.ms_ssim(first.float(), second.float(), 255)
    return {name: torch.no_grad()(function) for name, function in found.items()}


def cuda(width: int, height: int, batch: int = 8) -> list[Row]:
    """Return microseconds a frame of the peers' kernels on a CUDA device, 8-bit frames on the device, by CUDA events."""
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
