"""Test that all libraries that are missing for a driver are found, not only the first one."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from vkssim.doctor.elf import needed_libraries
from vkssim.doctor.missing_libraries import find_library, missing_libraries
from vkssim.host.libraries import load_problem
from vkssim.host.machine import Machine

from ..support.machines import machine, write_file
from .libraries import broken_library, lavapipe_library

NOT_FOUND = "{}: cannot open shared object file: No such file or directory"


def _elf(*needed: str, wide: bool = True) -> bytes:
    """Return the smallest ELF file that needs these libraries, of 64 or 32 bits."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    places = [strings.index(b"\0" + name.encode() + b"\0") + 1 for name in needed]
    entry, base = ("<qQ", 0x10000) if wide else ("<iI", 0x10000)
    start = 0x200
    text = start + struct.calcsize(entry) * (len(needed) + 2)
    dynamic = b"".join(struct.pack(entry, 1, place) for place in places)
    dynamic += struct.pack(entry, 5, base + text) + struct.pack(entry, 0, 0)
    size = text + len(strings)
    segments = [(1, 0, base, size), (2, start, base + start, len(dynamic))]
    head = bytearray(start)
    head[:7] = b"\x7fELF" + bytes([2 if wide else 1, 1, 1])
    table = 64 if wide else 52
    struct.pack_into(*(("<Q", head, 32, table) if wide else ("<I", head, 28, table)))
    struct.pack_into("<HH", head, 54 if wide else 42, 56 if wide else 32, len(segments))
    for number, (kind, offset, address, length) in enumerate(segments):
        if wide:
            struct.pack_into("<IIQQQQQQ", head, table + 56 * number, kind, 4, offset, address, address, length, length, 8)
        else:
            struct.pack_into("<IIIIIIII", head, table + 32 * number, kind, offset, address, address, length, length, 4, 4)
    return bytes(head) + dynamic + strings


@pytest.mark.parametrize("wide", [True, False])
def test_the_needed_libraries_of_a_file(tmp_path: Path, wide: bool) -> None:
    path = tmp_path / "driver.so"
    path.write_bytes(_elf("libX11.so.6", "libXext.so.6", wide=wide))
    assert needed_libraries(path) == ("libX11.so.6", "libXext.so.6")
    assert any(name.startswith("libc.") for name in needed_libraries(lavapipe_library()))


def test_files_that_are_no_libraries(tmp_path: Path) -> None:
    """No cut and no changed byte of the tables is more than a file without an answer."""
    path = tmp_path / "driver.so"
    whole = _elf("libX11.so.6")
    assert needed_libraries(tmp_path / "absent") == ()
    for data in [whole[:length] for length in range(0, len(whole), 7)] + [b"text", b"\x7fELF", b"\x7fELF\2\2" + whole[6:]]:
        path.write_bytes(data)
        assert needed_libraries(path) in ((), ("libX11.so.6",))
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + b"\xff" + whole[place + 1 :])
        assert isinstance(needed_libraries(path), tuple)


def test_the_dynamic_loader_names_one_and_all_are_found(tmp_path: Path) -> None:
    path = tmp_path / "libvulkan_broken.so"
    missing = broken_library(path)
    problem = load_problem(str(path))
    assert problem is not None
    assert sum(name in problem for name in missing) == 1
    assert set(missing_libraries(str(path), Machine())) == set(missing)
    assert missing_libraries(str(lavapipe_library()), Machine()) == ()


def test_libraries_of_libraries(tmp_path: Path) -> None:
    """As of NVIDIA's driver on a machine without X11; the library is found as the dynamic loader finds it."""
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    folder.mkdir(parents=True)
    (folder / "libGLX_nvidia.so.0").write_bytes(_elf("libnvidia-glcore.so.550", "libX11.so.6", "libc.so.6"))
    (folder / "libnvidia-glcore.so.550").write_bytes(_elf("libXext.so.6", "libGLX_nvidia.so.0"))

    def why(name: str) -> str | None:
        return None if name == "libc.so.6" else NOT_FOUND.format("libX11.so.6" if "GLX" in name else name)

    found = missing_libraries("libGLX_nvidia.so.0", machine(tmp_path), why)
    assert found == ("libXext.so.6", "libX11.so.6")


def test_a_library_that_is_nowhere(tmp_path: Path) -> None:
    assert missing_libraries("libGLX_nvidia.so.0", machine(tmp_path), NOT_FOUND.format) == ("libGLX_nvidia.so.0",)


def test_where_libraries_are_searched(tmp_path: Path) -> None:
    write_file(tmp_path / "etc/ld.so.conf", "include ld.so.conf.d/*.conf\n")
    write_file(tmp_path / "etc/ld.so.conf.d/own.conf", "# a comment\n/opt/own/lib # another\n")
    described = machine(tmp_path, LD_LIBRARY_PATH=str(tmp_path / "first"))
    for place in ("usr/lib", "usr/lib/aarch64-linux-gnu", "opt/own/lib", "first"):
        path = write_file(tmp_path / place / f"lib{place.count('/')}.so")
        assert find_library(path.name, described) == path
    assert find_library("lib9.so", described) is None
    assert find_library(str(tmp_path / "first/lib0.so"), described) == tmp_path / "first/lib0.so"
    assert find_library(str(tmp_path / "first/lib1.so"), described) is None
