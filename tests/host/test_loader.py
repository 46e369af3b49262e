"""Test the complaints of the Vulkan loader about a driver's file that it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..support.commands import vkssim_process

DRIVER = '{"file_format_version": "1.0.0", "ICD": {"library_path": "/no/such/driver.so", "api_version": "1.1.0"}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [("no JSON", ["JSON file", "driver.json"]), (DRIVER, ["/no/such/driver.so: cannot open shared object"])],
)
def test_a_drivers_file_that_cannot_be_used(tmp_path: Path, text: str, said: list[str]) -> None:
    """The loader's own words are passed on: by its code alone it would be out of memory."""
    path = tmp_path / "driver.json"
    path.write_text(text)
    result = vkssim_process("devices", environment={name: str(path) for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")})
    message = result.stderr.decode()
    assert result.returncode == 3
    assert all(words in message for words in said), message
    assert "host's memory" not in message
    assert "Correct or unset VK_DRIVER_FILES, which names the files" in message
    assert message.count("\n") == 1
