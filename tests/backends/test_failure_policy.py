"""The policy for devices that fail, and everything that follows it."""

from __future__ import annotations

import pytest

from vkssim.backends.device_cache import FailurePolicy
from vkssim.errors import (
    DeviceLostError,
    DeviceMemoryError,
    DeviceTimeoutError,
    InputError,
    UnsuitableDeviceError,
    WrongNumbersError,
)


def test_a_device_may_be_lost_once() -> None:
    policy = FailurePolicy(8)
    assert policy.allows_another_try(DeviceLostError("lost"))
    assert not policy.allows_another_try(DeviceLostError("lost"))
    assert policy.batch == 8


def test_batches_are_halved_down_to_a_frame() -> None:
    policy, batches = FailurePolicy(9), []
    while policy.allows_another_try(DeviceMemoryError("full")):
        batches.append(policy.batch)
    assert batches == [4, 2, 1]
    assert not FailurePolicy().allows_another_try(DeviceMemoryError("full")), "nothing was opened"


@pytest.mark.parametrize(
    "error",
    [
        DeviceTimeoutError("hangs"),
        UnsuitableDeviceError("lacks"),
        WrongNumbersError("wrong"),
        InputError("damaged"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_nothing_else_is_tried_again(error: Exception) -> None:
    assert not FailurePolicy(8).allows_another_try(error)
