"""The compute shaders: GLSL sources, their constants and interface, and the SPIR-V that the build made of them.

They contain only arithmetic. Read `constants` and `interface` first, then `ssim.comp` and the files that it includes.
"""

from __future__ import annotations

import functools
from importlib import resources


@functools.cache
def load_module(name: str) -> bytes:
    """Return the SPIR-V of a module such as `ms_ssim.strip`. Raises FileNotFoundError if the shaders were not built."""
    file = resources.files(__name__) / "spv" / f"{name}.spv"
    if not file.is_file():
        raise FileNotFoundError(f"shader {name} was not built; run scripts/build_shaders")
    return file.read_bytes()
