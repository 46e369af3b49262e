"""Test what is said of device nodes, containers and WSL on made-up machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.doctor.findings import Finding, Level
from vkssim.doctor.gpus import NVIDIA, gpus_section
from vkssim.doctor.survey import Survey
from vkssim.host.devices import DeviceKind
from vkssim.host.driver_files import driver_files
from vkssim.host.machine import Machine

from ..host.made_up import device_info
from ..support.machines import add_render_node, machine, write_driver_file, write_file

SOFTWARE = Survey(has_loader=True, devices=[device_info(0, "llvmpipe", kind=DeviceKind.CPU)], chosen=0)


def _findings(described: Machine, survey: Survey = SOFTWARE) -> list[Finding]:
    return list(gpus_section(described, driver_files(described), survey).findings)


def _advice(described: Machine, survey: Survey = SOFTWARE) -> list[str]:
    return [finding.advice for finding in _findings(described, survey) if finding.advice is not None]


def _container(root: Path, **environment: str) -> Machine:
    write_file(root / ".dockerenv")
    return machine(root, **environment)


def test_a_machine_without_a_gpu(tmp_path: Path) -> None:
    (finding,) = _findings(machine(tmp_path))
    assert (finding.level, finding.text) == (Level.NOTE, "device nodes of GPUs: there are none")


def test_a_gpu_that_works(tmp_path: Path) -> None:
    """Nothing is wrong, whatever the container's settings are."""
    write_file(tmp_path / "dev/nvidia0")
    node = add_render_node(tmp_path, "nvidia")
    survey = Survey(has_loader=True, devices=[device_info(0, "NVIDIA H100", vendor_id=NVIDIA)], chosen=0)
    section = gpus_section(_container(tmp_path), [], survey)
    assert [finding.level for finding in section.findings] == [Level.OK]
    assert str(node) in section.findings[0].text
    assert section.facts["nodes"][0]["kernel_driver"] == "nvidia"


@pytest.mark.parametrize(("in_container", "advice"), [(False, "sudo usermod -aG"), (True, "docker run --group-add")])
def test_a_node_that_the_user_may_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_container: bool, advice: str
) -> None:
    node = add_render_node(tmp_path, "amdgpu")
    node.chmod(0o660)
    monkeypatch.setattr("os.access", lambda path, _mode: path != node)
    monkeypatch.setattr(Path, "group", lambda _: "render")
    described = _container(tmp_path) if in_container else machine(tmp_path)
    rights, gpu = _findings(described)
    assert rights.text == f"this user may not open {node} (mode 660, group render)"
    assert f"{advice} render" in str(rights.advice)
    assert "may not open" in gpu.text


def test_a_folder_that_the_user_may_not_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "dev/dri"
    folder.mkdir(parents=True)
    monkeypatch.setattr("os.access", lambda path, _mode: path != folder)
    (finding,) = _findings(machine(tmp_path))
    assert (finding.level, finding.text) == (Level.WARNING, f"this user may not look into {folder}")
    assert finding.advice == f"sudo chmod 755 {folder}"


@pytest.mark.parametrize("capabilities", ["", "compute,utility"])
def test_a_container_without_graphics(tmp_path: Path, capabilities: str) -> None:
    write_file(tmp_path / "dev/nvidia0")
    described = _container(tmp_path, NVIDIA_DRIVER_CAPABILITIES=capabilities)
    texts = [finding.text for finding in _findings(described)]
    assert any("NVIDIA_DRIVER_CAPABILITIES is" in text and "Vulkan needs graphics" in text for text in texts)
    mount = "/usr/share/vulkan/icd.d/nvidia_icd.json"
    first, second = _advice(described)
    assert first == "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all"
    assert second.startswith(f"docker run --gpus all -v {mount}:{mount}:ro")


@pytest.mark.parametrize("capabilities", ["all", "compute,graphics"])
def test_a_container_with_graphics(tmp_path: Path, capabilities: str) -> None:
    write_file(tmp_path / "dev/nvidia0")
    write_driver_file(tmp_path / "etc/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert _advice(_container(tmp_path, NVIDIA_DRIVER_CAPABILITIES=capabilities)) == []


def test_a_driver_file_where_the_loader_does_not_look(tmp_path: Path) -> None:
    write_file(tmp_path / "dev/nvidia0")
    path = write_driver_file(tmp_path / "usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json", "libGLX_nvidia.so.0")
    assert _advice(machine(tmp_path)) == [f"export VK_DRIVER_FILES={path}"]


def test_a_machine_of_debian_without_nvidias_vulkan(tmp_path: Path) -> None:
    write_file(tmp_path / "dev/nvidia0")
    write_file(tmp_path / "etc/os-release", "ID=debian\n")
    (advice,) = _advice(machine(tmp_path))
    assert "nvidia-vulkan-icd" in advice


def test_a_container_without_any_node(tmp_path: Path) -> None:
    (advice,) = _advice(_container(tmp_path))
    assert "--gpus all" in advice
    assert "--device /dev/dri" in advice


def test_wsl(tmp_path: Path) -> None:
    write_file(tmp_path / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    (advice,) = _advice(machine(tmp_path))
    assert "wsl --update" in advice
    write_file(tmp_path / "dev/dxg")
    (finding,) = _findings(machine(tmp_path))
    assert "dzn" in finding.text
    assert "run vkssim in Windows" in str(finding.advice)
    dozen = Survey(has_loader=True, devices=[device_info(0, "Microsoft Direct3D12 (Radeon)")], chosen=0)
    assert [finding.level for finding in _findings(machine(tmp_path), dozen)] == [Level.OK]
