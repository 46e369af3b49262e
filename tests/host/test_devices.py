"""Which device is chosen, and what is known of the one there is."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from vkssim.host import devices as devices_module
from vkssim.host.api import vk
from vkssim.host.devices import DEVICE_VARIABLE, DeviceKind, choose_device, list_devices
from vkssim.host.errors import NoDeviceError, UnsuitableDeviceError
from vkssim.host.instance import Instance

from .made_up import device_info

DEVICES = [
    device_info(0, "GeForce RTX 4090"),
    device_info(1, "Intel Graphics", DeviceKind.INTEGRATED),
    device_info(2, "llvmpipe (LLVM 15.0.6, 256 bits)", DeviceKind.CPU),
]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE)


@pytest.mark.parametrize(
    ("selector", "index"),
    [
        (1, 1),
        ("2", 2),
        (" 0 ", 0),
        ("llvmpipe", 2),
        ("INTEL", 1),
        ("rtx 40", 0),
        (str(DEVICES[1].uuid), 1),
        (str(DEVICES[2].uuid).upper(), 2),
        (None, 0),
    ],
)
def test_index_name_and_uuid(selector: str | int | None, index: int) -> None:
    assert choose_device(DEVICES, selector).index == index


def test_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, index in (("1", 1), ("intel graphics", 1), ("", 0)):
        monkeypatch.setenv(DEVICE_VARIABLE, value)
        assert choose_device(DEVICES).index == index
        assert choose_device(DEVICES, "llvmpipe").index == 2, "an argument goes before the variable"
    monkeypatch.setenv(DEVICE_VARIABLE, "voodoo")
    with pytest.raises(NoDeviceError, match=f"{DEVICE_VARIABLE} 'voodoo'"):
        choose_device(DEVICES)


@pytest.mark.parametrize("selector", ["voodoo", "3", "15", "99", "-1", "", str(uuid.UUID(int=7))])
def test_unknown_selector_lists_the_devices(selector: str) -> None:
    """A number that is no index is not taken for part of a name: 15 stands in llvmpipe's."""
    with pytest.raises(NoDeviceError) as caught:
        choose_device(DEVICES, selector)
    for device in DEVICES:
        assert f"{device.index}: {device.name} ({device.uuid})" in str(caught.value)


def test_no_device_says_what_to_install() -> None:
    with pytest.raises(NoDeviceError, match="mesa-vulkan-drivers"):
        choose_device([])


def test_a_device_that_lacks_something() -> None:
    """It is passed over for another one, and what it lacks is named if there is none, or if it is chosen."""
    lacking = device_info(0, "Old", lacks=("Vulkan 1.1 (it offers 1.0)", "a compute queue"))
    assert choose_device([lacking, DEVICES[1]]).name == "Intel Graphics"
    for devices, selector in (([lacking], None), ([lacking, DEVICES[1]], "Old")):
        with pytest.raises(UnsuitableDeviceError, match=r"Old.*lacks Vulkan 1.1 \(it offers 1.0\), a compute queue"):
            choose_device(devices, selector)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)])
def test_lavapipe_comes_before_other_software_and_after_gpus(
    monkeypatch: pytest.MonkeyPatch, instance: Instance, order: tuple[int, ...]
) -> None:
    """The loader lists drivers in the order of their files, so SwiftShader may come first."""
    there = [
        ("SwiftShader Device (LLVM 10.0.0)", DeviceKind.CPU),
        ("llvmpipe (LLVM 19.1.7, 256 bits)", DeviceKind.CPU),
        ("Virtio-GPU Venus", DeviceKind.VIRTUAL),
        ("GeForce RTX 4090", DeviceKind.DISCRETE),
    ]
    monkeypatch.setattr(vk, "vkEnumeratePhysicalDevices", lambda _: list(order))
    monkeypatch.setattr(devices_module, "_describe", lambda place: device_info(0, *there[place]))
    found = [(device.index, device.name.split()[0]) for device in list_devices(instance)]
    assert found == list(enumerate(["GeForce", "Virtio-GPU", "llvmpipe", "SwiftShader"]))


# -- what a driver says of its device ---------------------------------------------------------------------------------


def _lacks(monkeypatch: pytest.MonkeyPatch, **differences: Any) -> list[str]:
    """What a device lacks that offers just enough, but for the differences."""
    offered = {
        "version": (1, 1, 0),
        "queues": vk.VK_QUEUE_COMPUTE_BIT,
        "stages": vk.VK_SHADER_STAGE_COMPUTE_BIT,
        "operations": vk.VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | vk.VK_SUBGROUP_FEATURE_SHUFFLE_BIT,
        "workgroup": 256,
        "shared": 24576,
        **differences,
    }
    families = [SimpleNamespace(queueFlags=offered["queues"])]
    monkeypatch.setattr(vk, "vkGetPhysicalDeviceQueueFamilyProperties", lambda _: families)
    limits = SimpleNamespace(maxComputeWorkGroupInvocations=offered["workgroup"], maxComputeSharedMemorySize=offered["shared"])
    subgroup = SimpleNamespace(supportedStages=offered["stages"], supportedOperations=offered["operations"])
    return devices_module._missing(None, limits, offered["version"], subgroup)


@pytest.mark.parametrize(
    ("differences", "named"),
    [
        ({"version": (1, 0, 68)}, "Vulkan 1.1 (it offers 1.0)"),
        ({"queues": 1}, "a compute queue"),
        ({"stages": 1}, "subgroup arithmetic and shuffles in compute shaders"),
        ({"operations": 1}, "subgroup arithmetic and shuffles in compute shaders"),
        ({"operations": vk.VK_SUBGROUP_FEATURE_ARITHMETIC_BIT}, "subgroup arithmetic and shuffles in compute shaders"),
        ({"workgroup": 64}, "workgroups of 256 (at most 64)"),
        ({"shared": 8192}, "24576 bytes of shared memory (it has 8192)"),
    ],
)
def test_each_lack_by_name(monkeypatch: pytest.MonkeyPatch, differences: dict[str, Any], named: str) -> None:
    assert _lacks(monkeypatch) == []
    assert _lacks(monkeypatch, **differences) == [named]


def test_where_a_device_sits(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `lspci -D` writes it, of whoever offers to say."""
    tell = vk.vkGetPhysicalDeviceProperties2

    def with_place(physical: Any, properties: Any) -> None:
        tell(physical, properties)
        following = vk.ffi.cast("VkBaseOutStructure*", properties.pNext)
        while following.sType != vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT:
            following = following.pNext
        place = vk.ffi.cast("VkPhysicalDevicePCIBusInfoPropertiesEXT*", following)
        place.pciDomain, place.pciBus, place.pciDevice, place.pciFunction = 0, 0x3B, 0x10, 1

    plain = list_devices(instance)
    extension = SimpleNamespace(extensionName="VK_EXT_pci_bus_info")
    monkeypatch.setattr(vk, "vkEnumerateDeviceExtensionProperties", lambda *_: [extension])
    monkeypatch.setattr(vk, "vkGetPhysicalDeviceProperties2", with_place)
    placed = list_devices(instance)
    assert {device.pci for device in placed} == {"0000:3b:10.1"}
    assert [device.uuid for device in placed] == [device.uuid for device in plain]
