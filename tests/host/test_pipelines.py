"""The pipeline cache on disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from vkssim.host.api import vk
from vkssim.host.device import Device
from vkssim.host.pipelines import PipelineBuilder, cache_of, unpacked
from vkssim.host.plan import Kernel
from vkssim.shaders import load_module

KERNEL = Kernel("ingest.staged", ((0, 64), (1, 1)))


@pytest.fixture
def initial_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes of an earlier run each new cache begins with."""
    sizes: list[int] = []
    create = vk.vkCreatePipelineCache

    def spy(device: Any, info: Any, allocator: Any) -> Any:
        sizes.append(info.initialDataSize)
        return create(device, info, allocator)

    monkeypatch.setattr(vk, "vkCreatePipelineCache", spy)
    return sizes


@contextmanager
def _built(device: Device, folder: Path | None) -> Iterator[PipelineBuilder]:
    with ExitStack() as stack:
        builder = PipelineBuilder(device, stack, load_module, folder)
        builder.build((KERNEL,))
        yield builder


def _build(device: Device, folder: Path | None) -> None:
    with _built(device, folder):
        pass


def _file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_cache_is_written_and_used_again(device: Device, tmp_path: Path, initial_bytes: list[int]) -> None:
    folder = tmp_path / "new" / "cache"
    _build(device, folder)
    file = _file(folder)
    written = file.read_bytes()
    assert file.name == f"{cache_of(device.info)}.pipelines"
    before = file.stat().st_mtime_ns
    _build(device, folder)
    assert initial_bytes == [0, len(unpacked(written))]
    assert initial_bytes[1] > 0
    assert _file(folder).stat().st_mtime_ns == before, "a cache that did not grow is not written again"


def _flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


@pytest.mark.parametrize(
    "spoil",
    [
        *(partial(Path.write_bytes, data=garbage) for garbage in (b"", b"short", b"\xff" * 4096)),
        *(partial(_flip, place=place) for place in (0, 20, 40, 70, -1)),
        _pipe,
        lambda file: file.chmod(0o666),
        lambda file: file.parent.chmod(0o777),
        lambda file: _link(file.parent),
    ],
)
def test_a_file_that_is_damaged_or_could_be_from_others_is_not_read(
    device: Device, tmp_path: Path, initial_bytes: list[int], spoil: Callable[[Path], None]
) -> None:
    """A single wrong bit keeps it from the driver. It is written anew, if the folder is the user's alone."""
    folder = tmp_path / "cache"
    _build(device, folder)
    file = _file(folder)
    spoil(file)
    private = not folder.is_symlink() and folder.stat().st_mode & 0o777 == 0o700
    _build(device, folder)
    _build(device, folder)
    assert initial_bytes == [0, 0, len(unpacked(file.read_bytes())) if private else 0]
    assert not private or initial_bytes[2] > 0


def test_folder_that_cannot_be_written_is_left_out(device: Device, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    _build(device, blocked)
    assert blocked.read_text() == "a file where the folder should be"


def test_no_folder_keeps_nothing(device: Device, initial_bytes: list[int]) -> None:
    _build(device, None)
    assert initial_bytes == [0]


def test_equal_kernels_are_compiled_once(device: Device) -> None:
    with _built(device, None) as builder:
        first = builder[KERNEL]
        builder.build((Kernel(KERNEL.module, KERNEL.constants),))
        assert builder[KERNEL] is first
        assert device.live_objects["Pipeline"] == 1
        assert device.live_objects["ShaderModule"] == 0


def test_a_file_that_cannot_be_replaced_leaves_no_other_beside_it(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError("in use")

    monkeypatch.setattr("vkssim.host.private.os.replace", refuse)
    _build(device, tmp_path)
    assert not list(tmp_path.iterdir())
