"""Test which signs of a GPU count on made-up machines on which Vulkan lists no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.host.unusable_gpus import unusable_gpus

from ..support.machines import add_render_node, machine, write_driver_file, write_file

NO_X11 = "libX11.so.6: cannot open shared object file: No such file or directory"


def _never(library: str) -> str | None:
    raise AssertionError(f"{library} is loaded without need")


def _nvidia(root: Path) -> Path:
    return write_driver_file(root / "usr/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")


def test_a_machine_without_a_gpu_has_no_sign(tmp_path: Path) -> None:
    """Mesa's files for GPUs are installed everywhere, and consoles of servers and virtual machines have nodes too."""
    for name in ("radeon", "intel", "lvp"):
        write_driver_file(tmp_path / f"usr/share/vulkan/icd.d/{name}_icd.json", "/no/such/library.so")
    for number, driver in enumerate(("virtio_gpu", "vgem", "ast", "hyperv_drm", "bochs")):
        add_render_node(tmp_path, driver, 128 + number)
    for name in ("dri/card0", "dri/renderD140", "nvidiactl", "nvidia-uvm", "dxg"):
        write_file(tmp_path / "dev" / name)
    assert unusable_gpus(machine(tmp_path), _never) == []


def test_a_file_of_nvidia_whose_library_does_not_load(tmp_path: Path) -> None:
    path = _nvidia(tmp_path)
    expected = f"{path} names NVIDIA's driver libGLX_nvidia.so.0, which does not load ({NO_X11})"
    write_file(tmp_path / "dev/nvidia0")
    assert unusable_gpus(machine(tmp_path), lambda _: NO_X11) == [expected]
    add_render_node(tmp_path, "nvidia")
    assert unusable_gpus(machine(tmp_path), lambda _: NO_X11) == [expected], "one GPU has one clause"
    assert unusable_gpus(machine(tmp_path, VK_DRIVER_FILES=str(path)), lambda _: NO_X11) == [expected]
    assert unusable_gpus(machine(tmp_path, VK_LOADER_DRIVERS_DISABLE="nvidia*"), _never) == []


@pytest.mark.parametrize("problem", [None, "/usr/lib32/libGLX_nvidia.so.0: wrong ELF class: ELFCLASS32"])
def test_a_file_of_nvidia_that_is_no_reason(tmp_path: Path, problem: str | None) -> None:
    """There may be no GPU, as in an image for containers; its library loads, or is for programs of 32 bits."""
    _nvidia(tmp_path)
    assert unusable_gpus(machine(tmp_path), _never) == []
    node = write_file(tmp_path / "dev/nvidia0")
    expected = [f"{node} is a GPU of NVIDIA, and Vulkan lists no device of it"]
    assert unusable_gpus(machine(tmp_path), lambda _: problem) == expected


@pytest.mark.parametrize(("driver", "maker"), [("amdgpu", "AMD"), ("i915", "Intel"), ("xe", "Intel"), ("nouveau", "NVIDIA")])
def test_a_render_node_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, maker: str) -> None:
    node = add_render_node(tmp_path, driver)
    assert unusable_gpus(machine(tmp_path), _never) == [f"{node} is a GPU of {maker}, and Vulkan lists no device of it"]
    monkeypatch.setattr("os.access", lambda path, _mode: path != node)  # root may open everything
    assert unusable_gpus(machine(tmp_path), _never) == [f"{node} is a GPU of {maker}, and this user may not open it"]


@pytest.mark.parametrize("variable", ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT"])
def test_gpus_that_are_left_out_on_purpose(tmp_path: Path, variable: str) -> None:
    path = write_driver_file(tmp_path / "usr/share/vulkan/icd.d/lvp_icd.json", "lib.so")
    write_file(tmp_path / "dev/nvidia0")
    add_render_node(tmp_path, "amdgpu")
    assert unusable_gpus(machine(tmp_path, **{variable: str(path)}), _never) == []


def test_the_gpu_of_windows_under_wsl(tmp_path: Path) -> None:
    write_file(tmp_path / "dev/dxg")
    assert unusable_gpus(machine(tmp_path), _never) == []
    write_file(tmp_path / "usr/lib/wsl/lib/libcuda.so.1")
    (clause,) = unusable_gpus(machine(tmp_path), _never)
    assert "WSL2 has no Vulkan driver" in clause
