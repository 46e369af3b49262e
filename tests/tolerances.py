"""How far numbers may lie apart, and why: the one table of the tests.

`measured` is the largest difference seen on lavapipe (Mesa 22.3) when the row was written; the end of every test run prints the
largest ones of that run beside the table's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """The largest absolute difference allowed, the reason that it is not 0, and the largest one measured."""

    name: str
    value: float
    measured: float
    reason: str


GOLDEN_CPU = Tolerance(
    "cpu against libvmaf",
    1e-6,
    5.2e-7,
    "libvmaf writes six decimals, so half a millionth is its own rounding; NumPy rounds as it does",
)
GOLDEN_EXACT = Tolerance(
    "vulkan, exact, against libvmaf", 1e-6, 8e-7, "half a millionth is libvmaf's own rounding; the rest is quotients in float32"
)
GOLDEN_VULKAN = Tolerance(
    "vulkan against libvmaf",
    5e-5,
    2.7e-5,
    "places=4; float32 windows over a separable low-pass, libvmaf filters with a table rounded to six decimals",
)
BACKENDS = Tolerance(
    "vulkan against cpu", 5e-5, 4.3e-5, "places=4 again: what separates Vulkan from libvmaf separates it from the NumPy twins"
)
SYMMETRY = Tolerance("swapped clips", 1e-6, 3e-9, "the formulas are symmetric, the order of a few float32 roundings is not")
RANGE = Tolerance(
    "doubles of range 1 against 255",
    1e-5,
    1e-6,
    "doubles are rounded to float32 before the product with 255 or after it, and the coarsest scale magnifies that",
)

INGEST = Tolerance("plane of ingest", 0.0, 0.0, "one product, rounded once in both")
DECIMATE = Tolerance(
    "plane of ms_ssim_decimate",
    2e-3,
    1.2e-3,
    "the shader is separable, the twin uses libvmaf's table, whose 81 entries are each off by up to 5e-7, times 255",
)
DECIMATE_EXACT = Tolerance(
    "plane of ms_ssim_decimate, exact",
    3.1e-5,
    0.0,
    "the same table and the same roundings; where the sum lies half way between two floats the last place may go either way",
)
DOWNSCALE = Tolerance(
    "plane of ssim_downscale",
    3.1e-5,
    0.0,
    "the same roundings; where the sum lies half way between two floats either may come out",
)
WINDOW = Tolerance(
    "sum of ms_ssim or ssim, a window",
    1e-5,
    3.5e-6,
    "moments and sums of a workgroup in float32, quotients and sums in double by the twin",
)
WINDOW_EXACT = Tolerance(
    "sum of ms_ssim or ssim, a window, exact",
    1e-6,
    2e-7,
    "the twin's moments; what remains are quotients and sums of a workgroup in float32, in double by the twin",
)
