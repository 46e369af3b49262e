"""The width of lavapipe's vectors: who chooses it, and that a process keeps what was chosen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vkssim.host import vectors
from vkssim.host.device import Device
from vkssim.host.vectors import CACHE_VARIABLES, WIDTH_VARIABLE, variables

from ..support.commands import python_process
from ..support.machines import add_render_node, write_file

AVX_512 = "avx2 avx512f avx512dq avx512cd avx512bw avx512vl"
CACHES = Path("/caches")
BOTH = {WIDTH_VARIABLE: "512", CACHE_VARIABLES[0]: "/caches/mesa-512"}


def _cpu(root: Path, flags: str) -> Path:
    write_file(root / "proc/cpuinfo", f"processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu {flags}\n")
    return root


@pytest.mark.parametrize("flags", ["avx2", "avx2 avx512f avx512cd avx512er avx512pf", AVX_512.replace("512vl", "512vlx")])
def test_another_cpu_changes_nothing(tmp_path: Path, flags: str) -> None:
    assert variables({}, CACHES, tmp_path) == {}, "the system does not describe its CPU"
    assert variables({}, CACHES, _cpu(tmp_path, flags)) == {}


@pytest.mark.parametrize(
    ("environment", "driver", "maps", "added"),
    [
        ({WIDTH_VARIABLE: "256"}, "bochs-drm", "", {CACHE_VARIABLES[0]: "/caches/mesa-256"}),
        ({WIDTH_VARIABLE: "none/../of"}, "bochs-drm", "", {}),
        ({CACHE_VARIABLES[0]: "/own"}, "bochs-drm", "", {WIDTH_VARIABLE: "512"}),
        ({CACHE_VARIABLES[1]: "/own"}, "bochs-drm", "", {WIDTH_VARIABLE: "512"}),
        ({"GALLIUM_OVERRIDE_CPU_CAPS": "avx"}, "bochs-drm", "", {}),
        (BOTH, "bochs-drm", "", {}),
        ({}, "bochs-drm", "", BOTH),
        ({}, "amdgpu", "", {}),  # the cache of a GPU stays where it is
        ({}, "bochs-drm", "7f00-7f01 r-xp 0 fe:00 1 /usr/lib/libvulkan_lvp.so\n", {}),  # a device has a width already
    ],
)
def test_what_is_added(tmp_path: Path, environment: dict[str, str], driver: str, maps: str, added: dict[str, str]) -> None:
    add_render_node(_cpu(tmp_path, AVX_512), driver)
    write_file(tmp_path / "proc/self/maps", maps)
    assert variables(environment, CACHES, tmp_path) == added


def test_without_a_private_folder_nothing_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (WIDTH_VARIABLE, *CACHE_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    shared = tmp_path / "shared"
    (shared / "vkssim").mkdir(parents=True)
    (shared / "vkssim").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared))
    vectors.choose_width(_cpu(tmp_path, AVX_512))
    assert WIDTH_VARIABLE not in os.environ


def test_the_name_of_lavapipe_says_the_width(device: Device) -> None:
    """Reports and `vkssim doctor` name the device, and so the width."""
    assert f"{32 * device.info.subgroup_size} bits" in device.info.name


LATER = f"""
import os
import numpy as np
from vkssim import ssim
from vkssim.host.devices import list_devices
from vkssim.host.instance import Instance, shared_instance
sizes = [[info.subgroup_size for info in list_devices(shared_instance()) if info.is_lavapipe]]
with Instance() as other:
    sizes += [[info.subgroup_size for info in list_devices(other) if info.is_lavapipe]]
pictures = np.random.default_rng(0).integers(0, 255, (2, 1, 192, 200), np.uint8)
scores = [ssim(*pictures, window="uniform8", backend=backend)[0] for backend in ("vulkan", "cpu")]
print(abs(scores[0] - scores[1]) < 1e-6, sizes, os.environ.get("{WIDTH_VARIABLE}"))
"""


@pytest.mark.parametrize("bits", [128, 256])
def test_each_width_scores_from_a_cache_of_its_own(tmp_path: Path, bits: int) -> None:
    """A process compiles long after it has listed the devices, and Mesa 25 then reads the width again."""
    environment = {WIDTH_VARIABLE: str(bits), "XDG_CACHE_HOME": str(tmp_path), **dict.fromkeys(CACHE_VARIABLES, "")}
    said = python_process("-c", LATER, environment=environment).stdout.decode()
    assert said == f"True [[{bits // 32}], [{bits // 32}]] {bits}\n"
    assert list((tmp_path / "vkssim" / f"mesa-{bits}").iterdir())
