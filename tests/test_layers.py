"""Test which modules an import really loads; import-linter (`ci/layers`) only sees the import statements."""

from __future__ import annotations

import pytest

from .support.commands import python_process

LOADED = "import sys, {0}; print(*(name for name in sys.modules if name == 'vulkan' or name.startswith('vkssim.host.')))"


@pytest.mark.parametrize(
    "module",
    [
        "vkssim",
        "vkssim.frames.decode.container",
        "vkssim.frames.open",
        "vkssim.report.reading",
        "vkssim.storage.folder",
    ],
)
def test_modules_that_read_and_write_files_load_nothing_of_vulkan(module: str) -> None:
    process = python_process("-c", LOADED.format(module))
    assert process.returncode == 0, process.stderr.decode()
    assert set(process.stdout.decode().split()) <= {"vkssim.host.closing", "vkssim.host.errors"}
