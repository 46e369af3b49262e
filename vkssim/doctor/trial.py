"""Try a device: compute a first score on it, then check all of its kernels.

`try_device` is the work of a process of its own. `DeviceTrial` collects its messages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..backends.known_answers import SIDE, pictures
from ..backends.open import open_backend
from ..backends.selftest import check_all
from ..errors import WrongNumbersError
from ..features.plane_metrics import FrameMetrics
from ..host.devices import choose_device, list_devices
from ..host.instance import shared_instance
from ..types import FrameFormat
from .apart import Send, run_in_process

_FEATURES = ("float_ms_ssim", "float_ssim")
_OPENING = "opening the device and compiling its kernels"


@dataclass
class DeviceTrial:
    """The result of a trial.

    `seconds_to_first_score` is the time in seconds from loading the driver to the first score of both metrics, compilation
    included; it is None if there was no score. `checked` is the number of known results that the device gave, `wrong` the
    message about one that differs, and `failure` the reason why the trial did not end. `doing` is the last step.
    """

    seconds_to_first_score: float | None = None
    checked: int = 0
    wrong: str | None = None
    failure: str | None = None
    doing: str = _OPENING

    @property
    def scores(self) -> bool:
        """Return whether the device gives scores, and none that is wrong."""
        return self.seconds_to_first_score is not None and self.wrong is None

    def plain(self) -> dict[str, Any]:
        """Return the trial as values of JSON."""
        return {"scores": self.scores, **asdict(self)}


def make_trial(uuid: str, seconds: float, say: Callable[[str], None]) -> DeviceTrial:
    """Return the result of a trial of the device with this UUID, which may take so many seconds.

    `say` is called with each step.
    """
    trial = DeviceTrial()
    say(trial.doing)

    def take(message: tuple[str, Any]) -> None:
        name, value = message
        setattr(trial, name, value)
        if name == "doing":
            say(value)

    trial.failure = run_in_process(try_device, (uuid,), seconds, take, {})
    return trial


def try_device(send: Send, uuid: str) -> None:
    """Send the fields of a `DeviceTrial`, step by step."""
    luma = FrameFormat.of_bits(SIDE, SIDE, 8)
    planes = FrameMetrics(_FEATURES, [luma]).planes
    began = time.perf_counter()
    try:
        with open_backend("vulkan", planes, device=uuid, batch=1, slots=1) as backend:
            batch = backend.batches[0]
            batch.reference[0][0], batch.distorted[0][0] = pictures()
            backend.submit(batch, 1)
            backend.collect(batch)
        send(("seconds_to_first_score", time.perf_counter() - began))

        def starting(number: int, total: int, name: str) -> None:
            send(("checked", number - 1))
            send(("doing", f"self-test {number} of {total}: {name}"))

        device = choose_device(list_devices(shared_instance()), uuid)
        send(("checked", check_all(device, uuid, starting)))
        send(("doing", "closing the device"))
    except WrongNumbersError as error:
        send(("wrong", str(error)))
