"""Choose the width of the vectors of lavapipe, Mesa's software driver: 512 bits on a CPU with AVX-512. Its own choice is 256.

lavapipe reads the width from the environment. Mesa 22.3 reads it once. Mesa 25 reads it again at each compilation, and computes
wrong sums if it has changed since the device was listed. So the variable is set before the first instance, and stays set.

Mesa's cache of compiled shaders does not distinguish widths, and Mesa 25 computes NaN with shaders of another width. So a width
that was chosen has a folder of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import platformdirs

from . import private
from .gpus import KERNEL_DRIVERS, ROOT, kernel_driver, render_nodes

WIDTH_VARIABLE = "LP_NATIVE_VECTOR_WIDTH"
"""The environment variable with the bits of lavapipe's vectors. A subgroup has as many invocations as these have floats."""

CACHE_VARIABLES = ("MESA_SHADER_CACHE_DIR", "MESA_GLSL_CACHE_DIR")
"""The environment variables that name the folder of Mesa's cache of shaders; the second is the older name."""

THREADS_VARIABLE = "LP_NUM_THREADS"
"""The environment variable with the number of lavapipe's threads, by default one for each core, 16 at most."""

_CPU_VARIABLE = "GALLIUM_OVERRIDE_CPU_CAPS"  # limits what Mesa uses of the CPU
_AVX_512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}
_WIDE = "512"
_LIBRARY = "libvulkan_lvp"


def choose_width(root: Path = ROOT) -> None:
    """Set the width and the folder of the cache for this process, unless they are set; call this before a driver is loaded."""
    added = variables(os.environ, platformdirs.user_cache_path("vkssim"), root)
    if CACHE_VARIABLES[0] in added:
        folder = Path(added[CACHE_VARIABLES[0]])
        try:
            private.private_folder(folder.parent)
            private.private_folder(folder)
        except OSError:  # a cache that all widths share would be wrong
            return
    os.environ.update(added)


def variables(environment: Mapping[str, str], caches: Path, root: Path = ROOT) -> dict[str, str]:
    """Return the variables to add to the environment; `caches` is the folder in which Mesa's cache gets a folder.

    A width that the user has set stays. Otherwise a CPU with AVX-512 gets 512 bits, but not on a machine with a GPU, whose Mesa
    driver would also use the folder, and not if lavapipe is already loaded, because its devices have a width then.
    """
    added = {}
    width = environment.get(WIDTH_VARIABLE, "")
    has_gpu = any(kernel_driver(node, root) in KERNEL_DRIVERS for node in render_nodes(root))
    can_be_wide = not environment.get(_CPU_VARIABLE) and _has_avx_512(root)
    if not width and can_be_wide and not has_gpu and not _is_loaded(root):
        added[WIDTH_VARIABLE] = width = _WIDE
    if width.isdecimal() and not any(environment.get(name) for name in CACHE_VARIABLES):
        added[CACHE_VARIABLES[0]] = str(caches / f"mesa-{width}")
    return added


def _has_avx_512(root: Path) -> bool:
    with suppress(OSError), (root / "proc/cpuinfo").open(errors="replace") as lines:
        return next((set(line.split()) >= _AVX_512 for line in lines if line.startswith("flags")), False)
    return False


def _is_loaded(root: Path) -> bool:
    with suppress(OSError):
        return _LIBRARY in (root / "proc/self/maps").read_text(errors="replace")
    return False
