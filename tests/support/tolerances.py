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

    def __post_init__(self) -> None:
        assert 0 <= self.measured <= self.value, self
        assert self.reason, self


GOLDEN_CPU = Tolerance(
    "cpu against libvmaf",
    1e-6,
    5.2e-7,
    "libvmaf writes six decimals, so half a millionth is its own rounding; NumPy rounds as it does",
)
GOLDEN_EXACT = Tolerance(
    "vulkan against libvmaf", 1e-6, 6.8e-7, "half a millionth is libvmaf's own rounding; the rest is quotients in float32"
)
GOLDEN_FAST = Tolerance(
    "vulkan, fast, against libvmaf",
    5e-5,
    2.7e-5,
    "places=4; float32 windows over a separable low-pass, libvmaf filters with a table rounded to six decimals",
)
LIBVMAF_SCORE = Tolerance(
    "random pairs against libvmaf, scores",
    1e-6,
    5.1e-7,
    "the promise; quotients and sums of a workgroup in float32; libvmaf's 15 decimals here are those of a float32",
)
LIBVMAF_TERM = Tolerance(
    "random pairs against libvmaf, l, c, s",
    1e-6,
    6.0e-7,
    "libvmaf writes six decimals, so half a millionth is its own rounding; the rest as of scores",
)
LIBVMAF_SMALL_MEAN = Tolerance(
    "mean below 1e-4, in float_ms_ssim",
    5e-9,
    9.8e-10,
    "sums in float32; for a mean of 1e-4 with the largest power it is the millionth that a score may be off; measured between"
    " the twin and libvmaf",
)
LIBVMAF_SIGN = Tolerance(
    "mean structure whose sign is open",
    1e-5,
    0.0,
    "libvmaf's own roundings decide whether such a mean is negative, and so whether float_ms_ssim exists",
)
GOLDEN_PSNR = Tolerance(
    "float_psnr against libvmaf, dB",
    6e-7,
    4.9e-7,
    "libvmaf writes six decimals; both backends meet them, since sums of integers are not rounded on the device",
)
GOLDEN_INTEGERS = Tolerance(
    "vif and adm against libvmaf",
    6e-7,
    5e-7,
    "libvmaf writes six decimals of them here; in `vmaf_cases.json`, of 17, the difference is 0",
)
PSNR_BACKENDS = Tolerance(
    "float_psnr, vulkan against cpu, dB",
    5e-7,
    2.6e-7,
    "libvmaf and the twin round squares of 14 and 16 bits to float32, by up to 6e-8 of them; the shader does not",
)
BACKENDS = Tolerance(
    "vulkan against cpu",
    1e-6,
    2.6e-7,
    "the same moments; quotients and sums of a workgroup are float32 on the device, double in the twin",
)
SYMMETRY = Tolerance("swapped clips", 1e-6, 3e-9, "the formulas are symmetric, the order of a few float32 roundings is not")
RANGE = Tolerance(
    "doubles of range 1 against 255",
    1e-5,
    1e-6,
    "doubles are rounded to float32 before the product with 255 or after it, and the coarsest scale magnifies that",
)

INGEST = Tolerance("plane of ingest", 0.0, 0.0, "one product, rounded once in both")
DECIMATE_FAST = Tolerance(
    "plane of ms_ssim_decimate, fast",
    2e-3,
    1.2e-3,
    "the fast shader is separable, the twin uses libvmaf's table, whose 81 entries are each off by up to 5e-7, times 255",
)
DECIMATE_EXACT = Tolerance(
    "plane of ms_ssim_decimate",
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
WINDOW_FAST = Tolerance(
    "sum of ssim, a window, fast",
    1e-5,
    3.5e-6,
    "moments and sums of a workgroup in float32, quotients and sums in double by the twin",
)
WINDOW_EXACT = Tolerance(
    "sum of ssim, a window",
    1e-6,
    6.3e-8,
    "the twin's moments; what remains are quotients and sums of a workgroup in float32, in double by the twin",
)
MEAN_NEAR_0 = Tolerance(
    "mean of ms_ssim near 0, relative",
    2e-6,
    3.0e-7,
    "quotients in float32; the distance from 0 is added, which keeps its digits, and a mean of 1e-4 raised to 0.3 needs them",
)
MEAN_NEAR_0_FAST = Tolerance(
    "mean of ms_ssim near 0, relative, fast", 2e-4, 9.1e-5, "variances and covariances are float32 differences of large sums"
)
SSIM_MAP_FAST = Tolerance(
    "window of a map, fast",
    2e-4,
    4.8e-5,
    "textures; moments and quotients in float32, one window's with no others to average it with",
)
SSIM_MAP_EXACT = Tolerance("window of a map", 1e-6, 2.4e-7, "the twin's moments, quotients in float32")
MAP_MEAN = Tolerance("mean of a map against its score", 1e-6, 1.9e-9, "windows in float32, sums of a workgroup in float32")

UNIFORM = Tolerance(
    "sum of ssim_uniform, a window",
    5e-7,
    8.6e-8,
    "blocks are merged without cancelling; sums, quotients and sums of a workgroup in float32, all in double by the twin",
)

UNIFORM_MAP = Tolerance(
    "window of a map of ssim_uniform", 2e-6, 3.0e-7, "as of ssim_uniform, one window's with no others to average it with"
)

UNIFORM_BACKENDS = Tolerance(
    "vulkan against cpu, 8x8 window", 5e-7, 4.2e-9, "what separates a workgroup's sums from the twin's, averaged"
)
TWIN_UNIFORM = Tolerance(
    "maps of the 8x8 window's twin", 1e-13, 2.7e-15, "another order of sums in double than the formulas written out"
)

PRODUCT_SLOPE = Tolerance("slope of a product of scales", 1e-8, 3.3e-10, "central differences of step 1e-5 in double")
TWIN_DOUBLE = Tolerance("twin of a loss, in double", 1e-12, 7e-13, "another order of sums; where variances are near 0 it shows")
TWIN_SUMMIT = Tolerance("twin's gradient, identical images", 1e-15, 2.9e-17, "rounding of what would cancel")
TWIN_DECIMATE = Tolerance("libvmaf pyramid of a loss's twin", 5e-6, 1.2e-6, "libvmaf rounds its table to six decimals")
LOSS_VALUE = Tolerance("value of a loss against the twin", 1e-6, 1.2e-7, "moments and sums of a workgroup in float32")
LOSS_VALUE_FLAT = Tolerance(
    "value of a loss, flat images",
    5e-6,
    5.3e-7,
    "variances are what rounding leaves of the samples' squares; K2 keeps it small",
)
LOSS_GRADIENT = Tolerance(
    "gradient of a loss against the twin", 1e-5, 4e-6, "relative, in norm; moments, derivatives and their windows in float32"
)
LOSS_GRADIENT_FLAT = Tolerance(
    "gradient of a loss, flat images", 5e-4, 9.8e-5, "relative, in norm; windows of derivatives that nearly cancel"
)
LOSS_SLOPE = Tolerance(
    "gradient of a loss, its slope",
    2e-6,
    2.7e-7,
    "in units of the largest sample; central differences of step 1e-4 of the twin",
)
LOSS_MSSSIM = Tolerance(
    "against pytorch-msssim, its defaults", 3e-5, 8.4e-6, "it rounds its window to float32, and all else; gradients relative"
)
LOSS_COMPOSED = Tolerance(
    "losses in PyTorch's operations against the twin",
    1e-12,
    0.0,
    "another order of sums in double; gradients relative, in norm",
)
LOSS_SECOND = Tolerance(
    "second derivative against pytorch-msssim",
    1e-5,
    2.4e-6,
    "relative, in norm; both in double but for the gradient that is squared, in float32",
)
LOSS_SECOND_HALF = Tolerance(
    "second derivative, half precision", 2**-7, 2.7e-3, "relative, in norm; gradient and result are rounded to eight bits each"
)
LOSS_HALF = Tolerance(
    "gradient of a loss, half precision", 2**-8, 1.7e-3, "relative, in norm; rounded to the eight bits of bfloat16, once"
)
LOSS_SAMPLE = Tolerance(
    "sample of a loss's gradient",
    2e-5,
    0.0,
    "in units of the plane's largest; moments, derivatives and their windows in float32",
)
LOSS_PYRAMID = Tolerance("plane of a loss's pyramid", 5e-7, 0.0, "of range 1; four or 81 products in float32")
LOSS_COLLECT = Tolerance("gradient of loss_collect", 2e-6, 0.0, "of range 1; two sums of up to 25 products in float32")
LOSS_MEANS = Tolerance("numbers of loss_means", 1e-5, 0.0, "relative; a power, which Vulkan allows 16 last places or so")
