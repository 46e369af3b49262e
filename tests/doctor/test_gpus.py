"""Test what is said of device nodes, containers and WSL on made-up machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.doctor.driver_files import driver_files
from vkssim.doctor.findings import Finding, Level
from vkssim.doctor.gpus import gpus_section
from vkssim.doctor.survey import Survey
from vkssim.doctor.system import Machine
from vkssim.host.devices import NVIDIA, DeviceKind

from ..host.made_up import device_info
from ..support.machines import add_render_node, machine, write_driver_file, write_file

SOFTWARE = Survey(has_loader=True, devices=[device_info(0, "llvmpipe", kind=DeviceKind.CPU)], chosen=0)


def _findings(described: Machine, survey: Survey = SOFTWARE) -> list[Finding]:
    return list(gpus_section(described, driver_files(described), survey).findings)


def test_a_machine_without_a_gpu(tmp_path: Path) -> None:
    (finding,) = _findings(machine(tmp_path))
    assert (finding.level, finding.text) == (Level.NOTE, "device nodes of GPUs: there are none")


def test_a_gpu_that_works(tmp_path: Path) -> None:
    """Nothing is wrong, whatever the container's settings are."""
    write_file(tmp_path / "dev/nvidia0")
    node = add_render_node(tmp_path, "nvidia")
    survey = Survey(has_loader=True, devices=[device_info(0, "NVIDIA H100", vendor_id=NVIDIA)], chosen=0)
    write_file(tmp_path / ".dockerenv")
    section = gpus_section(machine(tmp_path), [], survey)
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
    if in_container:
        write_file(tmp_path / ".dockerenv")
    rights, gpu = _findings(machine(tmp_path))
    assert rights.text == f"this user may not open {node} (mode 660, group render)"
    assert f"{advice} render" in str(rights.advice)
    assert "may not open" in gpu.text


NVIDIAS_FILE = "nvidia_icd.json"
MOUNT = f"-v /usr/share/vulkan/icd.d/{NVIDIAS_FILE}:/usr/share/vulkan/icd.d/{NVIDIAS_FILE}:ro"
CAPABILITIES = "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=all"


@pytest.mark.parametrize(
    ("files", "environment", "advice"),
    [
        ([".dockerenv"], {}, [f"for a GPU of NVIDIA: {CAPABILITIES}; for others: docker run --device /dev/dri"]),
        (
            [".dockerenv", "dev/nvidia0"],
            {"NVIDIA_DRIVER_CAPABILITIES": "compute,utility"},
            [CAPABILITIES, f"docker run --gpus all {MOUNT}, where the host has the file there or in /etc/vulkan/icd.d"],
        ),
        ([".dockerenv", "dev/nvidia0", f"etc/vulkan/icd.d/{NVIDIAS_FILE}"], {}, [CAPABILITIES]),
        ([".dockerenv", "dev/nvidia0", f"etc/vulkan/icd.d/{NVIDIAS_FILE}"], {"NVIDIA_DRIVER_CAPABILITIES": "all"}, []),
        (
            [".dockerenv", "dev/nvidia0", f"etc/vulkan/icd.d/{NVIDIAS_FILE}"],
            {"NVIDIA_DRIVER_CAPABILITIES": "compute,graphics"},
            [],
        ),
        (
            ["dev/nvidia0", f"usr/local/nvidia/share/vulkan/icd.d/{NVIDIAS_FILE}"],  # where the loader does not look
            {},
            [f"export VK_DRIVER_FILES={{}}/usr/local/nvidia/share/vulkan/icd.d/{NVIDIAS_FILE}"],
        ),
        (
            ["dev/nvidia0", "etc/os-release"],
            {},
            ["apt install nvidia-vulkan-icd on Debian, libnvidia-gl-NNN of the driver's version on Ubuntu"],
        ),
        (["dev/nvidia0"], {}, ["install NVIDIA's driver with its Vulkan part"]),
    ],
)
def test_a_gpu_that_vulkan_does_not_list(
    tmp_path: Path, files: list[str], environment: dict[str, str], advice: list[str]
) -> None:
    for name in files:
        if name.endswith(".json"):
            write_driver_file(tmp_path / name, "libGLX_nvidia.so.0")
        else:
            write_file(tmp_path / name, "ID=debian\n")
    found = _findings(machine(tmp_path, **environment))
    assert [finding.advice for finding in found if finding.advice is not None] == [text.format(tmp_path) for text in advice]


def test_wsl(tmp_path: Path) -> None:
    write_file(tmp_path / "proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n")
    (finding,) = _findings(machine(tmp_path))
    assert "wsl --update" in str(finding.advice)
    write_file(tmp_path / "dev/dxg")
    (finding,) = _findings(machine(tmp_path))
    assert "dzn" in finding.text
    assert "run vkssim in Windows" in str(finding.advice)
    dozen = Survey(has_loader=True, devices=[device_info(0, "Microsoft Direct3D12 (Radeon)")], chosen=0)
    assert [finding.level for finding in _findings(machine(tmp_path), dozen)] == [Level.OK]
