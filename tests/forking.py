"""Forks and spawns, and prints as JSON what was seen. `test_fork.py` runs it as a process of its own: pytest is not to be
forked once drivers have threads in it.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import vkssim
from vkssim.backends.base import Batch
from vkssim.backends.loss_engine import LossEngine, LossStep
from vkssim.errors import ForkError
from vkssim.host.devices import list_devices
from vkssim.host.instance import shared_instance
from vkssim.loss.spec import Loss, constants
from vkssim.maps.mapper import SsimMapper
from vkssim.types import FrameFormat
from vkssim.utils import thread_pool

from .support.pictures import pair

CLIPS = [str(Path(__file__).parents[1] / "fixtures" / f"bbb_576x324_{which}.mp4") for which in ("ref", "dis")]
PAIR = pair(180, 190)
IMAGES = [image[None, None].astype(np.float32) / 255 for image in PAIR]
WINDOW = "uniform8"  # whose kernel compiles sooner than the Gaussian's, in each process anew
FEATURE = f"float_ssim=scale=1:window={WINDOW}"


def cpu() -> Any:
    return vkssim.ssim(*PAIR, window=WINDOW, backend="cpu")


def device() -> Any:
    return vkssim.ssim(*PAIR, window=WINDOW)


def torch_ssim() -> Any:
    import torch

    from vkssim.torch import ssim

    first, second = map(torch.from_numpy, IMAGES)
    return ssim(first, second, data_range=1.0)


WELL = 7
"""How children end: with a code of their own."""

USES: dict[str, Callable[[], object]] = {
    "ssim": device,
    "a map": lambda: vkssim.ssim(*PAIR, return_map=True),
    "ms_ssim": lambda: vkssim.ms_ssim(*PAIR),
    "ssim_and_grad": lambda: vkssim.ssim_and_grad(*IMAGES, data_range=1.0),
    "Scorer": lambda: vkssim.Scorer(190, 180, bits=8),
    "score_files": lambda: vkssim.score_files(*CLIPS, features=["float_psnr"]),
    "list_devices": lambda: list_devices(shared_instance()),
}
"""The uses of Vulkan by a child."""


def in_fork(use: Callable[[], object]) -> str:
    """Return the result in a forked child, which then ends as programs do, and must end well."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            outcome = f"{use()}"
        except ForkError as error:
            outcome = f"ForkError: {error}"
        os.write(write, outcome.encode())
        sys.exit(WELL)
    os.close(write)
    with os.fdopen(read) as told:
        outcome = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return outcome if code == WELL else f"exit {code}, {outcome}"


def after_opening() -> dict[str, str]:
    """Forks while devices are open and a batch is on its way; the children end inside the `with` of their parent's objects."""
    scores = device()
    pairs = [pair(180, 190, seed=seed) for seed in range(4)]
    expected = [vkssim.ssim(*frames, window=WINDOW) for frames in pairs]
    got: list[Any] = []
    mapper = SsimMapper(FrameFormat.of_bits(190, 180, 8), {"window": WINDOW})
    engine = LossEngine(LossStep(Loss(180, 190, **constants(1.0)), gradient=True))
    planes = IMAGES[0][0], IMAGES[1][0]
    with mapper, engine, vkssim.Scorer(190, 180, bits=8, features=[FEATURE], batch=2) as scorer:
        for frames in pairs[:3]:
            got += scorer.feed(*frames)
        seen = {name: in_fork(use) for name, use in USES.items()}
        seen["feed"] = in_fork(lambda: scorer.feed(*PAIR))
        seen["flush"] = in_fork(scorer.flush)
        seen["mapper"] = in_fork(lambda: mapper.run(PAIR[0][None], PAIR[1][None]))
        seen["engine"] = in_fork(lambda: engine.run(*planes))
        seen["cpu"] = in_fork(cpu)
        seen["grandchild"] = in_fork(lambda: in_fork(device))
        seen["torch"] = in_fork(torch_ssim)
        got += [*scorer.feed(*pairs[3]), *scorer.flush()]
    seen["parent"] = str([frame.metrics["float_ssim"] for frame in got] == expected and device() == scores)
    return seen


def while_reading() -> dict[str, str]:
    """A fork out of a run's callback: FFmpeg's threads and the readers' are not in the child, which must not wait for them."""
    thread_pool.END_TIMEOUT_S = 1e6
    seen: dict[str, str] = {}
    parent = os.getpid()

    def score() -> int:
        return len(vkssim.score_files(*CLIPS, features=["float_psnr"], progress=fork_once).frames)

    def fork_once(*_: object) -> None:
        if not seen:
            seen["child"] = in_fork(lambda: "ends")

    with suppress(ForkError):
        seen["parent"] = str(score())
    assert os.getpid() == parent
    return seen


def while_another_thread_scores() -> dict[str, str]:
    """The thread that is in the scorer is not in the child: nobody there waits for it to leave."""
    with vkssim.Scorer(190, 180, bits=8, features=[FEATURE], backend="cpu", batch=1) as scorer:
        got: list[Any] = []
        inside, leave = threading.Event(), threading.Event()
        submit = scorer._backend.submit

        def submit_slowly(batch: Batch, frames: int, after: Batch | None = None) -> None:
            inside.set()
            leave.wait(30)
            submit(batch, frames, after)

        scorer._backend.submit = submit_slowly  # type: ignore[method-assign]
        thread = threading.Thread(target=lambda: got.extend(scorer.feed(*PAIR)))
        thread.start()
        inside.wait(30)
        seen = {"child": in_fork(scorer.close)}
        leave.set()
        thread.join()
        seen["parent"] = str(len([*got, *scorer.flush()]))
    return seen


def before_opening() -> dict[str, str]:
    """Each process opens devices of its own."""

    def psnr() -> float:  # whose kernel compiles soonest
        with vkssim.Scorer(190, 180, bits=8, features="float_psnr") as scorer:
            (frame,) = scorer.score([PAIR])
        return frame.metrics["float_psnr"]

    child = in_fork(psnr)
    return {"child": child, "parent": str(psnr())}


def _first(loader: Iterable[object]) -> object:
    return next(iter(loader))


def pools() -> dict[str, str]:
    """Workers as Python and PyTorch start them, from a process with a device open."""
    from torch.utils.data import DataLoader, IterableDataset

    class Scores(IterableDataset[float]):
        def __init__(self, use: Callable[[], float]) -> None:
            self._use = use

        def __iter__(self) -> Iterator[float]:
            yield self._use()

    seen = {"parent": str(device())}

    def note(name: str, value: Callable[[], object]) -> None:
        try:
            seen[name] = str(value())
        except ForkError as error:
            seen[name] = f"ForkError: {error}"

    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            for use in (device, cpu):
                note(f"{method}, {use.__name__}", partial(pool.apply, use))
    for use in (device, cpu):
        loader = DataLoader(Scores(use), batch_size=None, num_workers=1, multiprocessing_context="fork")
        note(f"DataLoader, {use.__name__}", partial(_first, loader))
    return seen


def freeze_imports(*modes: str) -> None:
    """Keep what was imported out of the collection of garbage with which each child ends: there it takes most of the time.

    PyTorch is imported here, because spawned children do not need it. What is made from here on is collected.
    """
    if "after_opening" in modes:
        import vkssim.torch  # noqa: F401

    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    freeze_imports(*sys.argv[1:])
    print(json.dumps({"pid": str(os.getpid()), **{mode: globals()[mode]() for mode in sys.argv[1:]}}))
