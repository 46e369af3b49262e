"""Made-up machines: folders with driver files and device nodes, and an environment."""

from __future__ import annotations

import json
from pathlib import Path

from vkssim.doctor.system import Machine

HOME = "/home/user"


def machine(root: Path, platform: str = "linux", **environment: str) -> Machine:
    """Return a machine below a folder, whose user has a home and nothing else in the environment."""
    return Machine(root, {"HOME": str(root) + HOME, **environment}, platform)


def write_file(path: Path, content: str = "") -> Path:
    """Write a file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def write_driver_file(path: Path, library: str) -> Path:
    """Write the file of a driver whose library has this path or name."""
    described = {"library_path": library, "api_version": "1.3.0"}
    return write_file(path, json.dumps({"file_format_version": "1.0.0", "ICD": described}))


def add_render_node(root: Path, driver: str, number: int = 128) -> Path:
    """Add a render node of a kernel driver to a machine, as /dev and /sys show it."""
    drivers = root / "sys/bus/pci/drivers" / driver
    drivers.mkdir(parents=True, exist_ok=True)
    device = root / f"sys/class/drm/renderD{number}/device"
    device.mkdir(parents=True)
    (device / "driver").symlink_to(drivers)
    return write_file(root / f"dev/dri/renderD{number}")
