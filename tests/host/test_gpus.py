"""Test which signs of a GPU count on made-up machines on which Vulkan lists no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.host.gpus import unlisted_gpus

from ..support.machines import add_render_node, write_driver_file, write_file


def test_a_machine_without_a_gpu_has_no_sign(tmp_path: Path) -> None:
    """Mesa's files for GPUs are installed everywhere, and consoles of servers and virtual machines have nodes too."""
    for name in ("radeon", "intel", "lvp"):
        write_driver_file(tmp_path / f"usr/share/vulkan/icd.d/{name}_icd.json", "/no/such/library.so")
    for number, driver in enumerate(("virtio_gpu", "vgem", "ast", "hyperv_drm", "bochs")):
        add_render_node(tmp_path, driver, 128 + number)
    for name in ("dri/card0", "dri/renderD140", "nvidiactl", "nvidia-uvm", "dxg"):
        write_file(tmp_path / "dev" / name)
    assert unlisted_gpus({}, tmp_path) == []


def test_nodes_of_nvidia_are_one_gpu_each(tmp_path: Path) -> None:
    """NVIDIA's file alone is no sign, as in an image for containers."""
    write_driver_file(tmp_path / "usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert unlisted_gpus({}, tmp_path) == []
    node = write_file(tmp_path / "dev/nvidia0")
    expected = [f"{node} is a GPU of NVIDIA, and Vulkan lists no device of it"]
    assert unlisted_gpus({}, tmp_path) == expected
    add_render_node(tmp_path, "nvidia")
    assert unlisted_gpus({}, tmp_path) == expected, "one GPU has one clause"


@pytest.mark.parametrize(("driver", "maker"), [("amdgpu", "AMD"), ("i915", "Intel"), ("xe", "Intel"), ("nouveau", "NVIDIA")])
def test_a_render_node_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, maker: str) -> None:
    node = add_render_node(tmp_path, driver)
    assert unlisted_gpus({}, tmp_path) == [f"{node} is a GPU of {maker}, and Vulkan lists no device of it"]
    monkeypatch.setattr("os.access", lambda path, _mode: path != node)  # root may open everything
    assert unlisted_gpus({}, tmp_path) == [f"{node} is a GPU of {maker}, and this user may not open it"]


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT"])
def test_gpus_that_are_left_out_on_purpose(tmp_path: Path, variable: str) -> None:
    path = write_driver_file(tmp_path / "usr/share/vulkan/icd.d/lvp_icd.json", "lib.so")
    write_file(tmp_path / "dev/nvidia0")
    add_render_node(tmp_path, "amdgpu")
    assert unlisted_gpus({variable: str(path)}, tmp_path) == []


def test_the_gpu_of_windows_under_wsl(tmp_path: Path) -> None:
    write_file(tmp_path / "dev/dxg")
    assert unlisted_gpus({}, tmp_path) == []
    write_file(tmp_path / "usr/lib/wsl/lib/libcuda.so.1")
    (clause,) = unlisted_gpus({}, tmp_path)
    assert "WSL2 has no Vulkan driver" in clause
