"""The work of one submission follows the measured speed of the device."""

from __future__ import annotations

import pytest

from vkssim.host.devices import DeviceKind
from vkssim.host.division import TARGET_SECONDS, SubmissionBudget

BATCH = 150_000_000  # eight frames of 1080p, 8 bit, all scales


def test_software_drivers_have_no_limit() -> None:
    budget = SubmissionBudget(DeviceKind.CPU, BATCH)
    assert (budget.most, budget.measuring) == (None, False)


@pytest.mark.parametrize("kind", [DeviceKind.INTEGRATED, DeviceKind.VIRTUAL, DeviceKind.OTHER])
def test_devices_that_may_be_slow_begin_with_little(kind: DeviceKind) -> None:
    """An integrated GPU with an eightieth of an H100's bandwidth takes less than the target for it."""
    budget = SubmissionBudget(kind, BATCH)
    discrete = SubmissionBudget(DeviceKind.DISCRETE, BATCH)
    assert budget.most is not None
    assert discrete.most is not None
    assert budget.most < BATCH < discrete.most
    assert budget.most / 1e9 < TARGET_SECONDS
    unmeasured = SubmissionBudget(kind, BATCH, can_measure=False)
    assert (unmeasured.most, unmeasured.measuring) == (budget.most, False)
    budget.note(BATCH, 1e9)
    assert budget.most >= 1 << 16, "work never vanishes"


@pytest.mark.parametrize("kind", [DeviceKind.DISCRETE, DeviceKind.INTEGRATED])
def test_a_fast_device_is_measured_once(kind: DeviceKind) -> None:
    budget = SubmissionBudget(kind, BATCH)
    budget.note(BATCH // 8, TARGET_SECONDS / 100)
    assert budget.most is None
    assert not budget.measuring


def test_a_slow_device_gets_less_and_is_measured_again() -> None:
    budget = SubmissionBudget(DeviceKind.DISCRETE, BATCH)
    for seconds in (4.0, 1.0, 8.0):
        budget.note(BATCH, seconds)
        assert budget.most is not None
        assert TARGET_SECONDS / 2 < budget.most / BATCH * seconds <= TARGET_SECONDS
        assert budget.measuring


def test_nearly_equal_measurements_give_the_same_work() -> None:
    """Commands are recorded for each different value."""
    values = set()
    for seconds in (1.00, 1.05, 0.98, 1.02):
        budget = SubmissionBudget(DeviceKind.INTEGRATED, BATCH)
        budget.note(BATCH, seconds)
        values.add(budget.most)
    assert len(values) == 1
