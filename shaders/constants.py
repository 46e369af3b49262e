"""The constants of the metrics, defined once; `scripts/build_shaders` generates `constants.glsl` from them.

The window, the low-pass and the exponents are those of libvmaf v3.2.0 (`iqa/ssim_tools.h`, `ms_ssim.c`). libvmaf took them from
Z. Wang, E. P. Simoncelli, A. C. Bovik, "Multi-scale structural similarity for image quality assessment", Asilomar 2003.

This module imports only the standard library: the package's build runs it before anything is installed.
"""

import math

L = 255.0
"""Dynamic range: every sample is first scaled to 0..255."""

C1 = (0.01 * L) ** 2
C2 = (0.03 * L) ** 2
C3 = C2 / 2

GAUSSIAN = (
    0.001028, 0.007599, 0.036001, 0.109361, 0.213006, 0.266012,
    0.213006, 0.109361, 0.036001, 0.007599, 0.001028,
)  # fmt: skip
"""The 11 taps of the window in each direction. They sum to 1.000002; libvmaf has this bias, so it is not corrected."""

WINDOW = tuple(math.exp(-(k**2) / 4.5) / sum(math.exp(-(i**2) / 4.5) for i in range(-5, 6)) for k in range(-5, 6))
"""The 11 taps of the losses: standard deviation 1.5, normalised, not rounded, as in Wang et al. 2004 and PyTorch libraries."""

LOW_PASS = (
    0.026727, -0.016828, -0.078201, 0.266846, 0.602914,
    0.266846, -0.078201, -0.016828, 0.026727,
)  # fmt: skip
"""The 9 taps of the 9/7 biorthogonal low-pass that precedes each decimation."""

LOW_PASS_QUARTER = (
    (0.000714, -0.000450, -0.002090, 0.007132, 0.016114),
    (-0.000450, 0.000283, 0.001316, -0.004490, -0.010146),
    (-0.002090, 0.001316, 0.006115, -0.020867, -0.047149),
    (0.007132, -0.004490, -0.020867, 0.071207, 0.160885),
    (0.016114, -0.010146, -0.047149, 0.160885, 0.363505),
)
"""Rows and columns -4..0 of libvmaf's symmetric 9x9 low-pass table. Two digits differ from the rounded products."""

SCALES = 5
ALPHA = (0.0, 0.0, 0.0, 0.0, 0.1333)
BETA = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
GAMMA = BETA

SMALLEST_SIDE = 176
"""The smallest width and height for five scales of MS-SSIM: four halvings, rounded down, leave 11 samples."""

EXACT_WORKGROUP = 64
"""Threads of a workgroup of the staged window that rounds as libvmaf does; it has as many columns of windows."""

WINDOW_WORKGROUP = 256
"""Threads of a workgroup of the other staged windows; it has as many columns of samples."""

UNIFORM = 8
"""Width and height of the rectangular window of float_ssim."""

FRAGMENT = 32
"""Columns of a fragment of the estimate; no window crosses its edges; Mazurek and Okarma 2010."""

FRAGMENT_WINDOWS = FRAGMENT - 8
"""Columns of windows of a fragment that count. Each thread has one column, and the four threads at either end do not count."""

STRIP_COLUMNS = 8
"""Columns that one thread of the strip window processes."""

LOSS_WORKGROUP = 128
"""Threads of a workgroup of the staged losses; it has as many columns of samples."""

POINTWISE_ROWS = 8
"""Rows that one thread makes if each output needs few samples: a workgroup for each row would take too long to launch."""

DECIMATE_WORKGROUP = 64
"""Threads of a workgroup of the staged decimation; each thread has four columns of samples."""

DECIMATE_OUTPUTS = (4 * DECIMATE_WORKGROUP - 16) // 2
"""Output columns of such a workgroup: all that its samples complete, as a multiple of eight, because a thread makes eight."""

EXACT_OUTPUTS = 2
"""Output columns that one thread of the staged decimation makes that rounds as libvmaf does."""

DECIMATE_COLUMNS = 8
"""Output columns that one thread of the strip decimation makes."""

INGEST_COLUMNS = 8
"""Samples that one thread of the ingest converts."""

VIF_FILTERS = (
    (489, 935, 1640, 2640, 3896, 5274, 6547, 7455, 7784, 7455, 6547, 5274, 3896, 2640, 1640, 935, 489),
    (1244, 3663, 7925, 12590, 14692, 12590, 7925, 3663, 1244),
    (3571, 16004, 26386, 16004, 3571),
    (10904, 43728, 10904),
)
"""The taps of vif at each of its four scales, 65536 times the Gaussian: libvmaf's `integer_vif.h`. Each row sums to 65536."""

VIF_NOISE = 2 << 16
"""The variance of the noise of the eye in vif's model, 2, times 65536."""

VIF_WORKGROUP = 256
"""Threads of a workgroup of the staged vif; it has as many columns of samples."""

VIF_SMALLEST_SIDE = 16
"""The smallest width and height for four scales of vif: three halvings leave the 2 samples that its border rule needs."""

MOTION_FILTER = VIF_FILTERS[2]
"""The taps of motion: libvmaf's `integer_motion.h`."""

MOTION_WORKGROUP = 128
"""Threads of a workgroup of the staged motion; it has as many columns of samples."""

MOTION_SMALLEST_SIDE = 3
"""The smallest width and height that the reflected border of motion's five taps needs."""

ADM_LOW_PASS = (15826, 27411, 7345, -4240)
"""The taps of adm's low-pass, 32768 times Daubechies' wavelet of two vanishing moments (db2): libvmaf's `integer_adm.h`."""

ADM_HIGH_PASS = (-4240, -7345, 27411, -15826)
"""The taps of adm's high-pass. They sum to 0, so that a flat picture has no bands."""

ADM_SCALES = 4

ADM_THIRTIETH = (4369, 143165577)
"""A thirtieth, the weight of a neighbour in the threshold: 2^17 times for scale 0, 2^32 times later."""

ADM_FIFTEENTH = (8738, 286331153)
"""A fifteenth, the weight of the place itself, times the same."""

ADM_COS_SQUARED = 16772106
"""2^24 times the squared cosine of a degree, rounded to float32: gradients within it count as parallel."""

ADM_WORKGROUP = 64
"""Threads of a workgroup of the staged adm; it has as many columns of bands. Few, because only the inner columns count."""

ADM_SMALLEST_SIDE = 33
"""The smallest width and height for four scales of adm: three halvings leave the 5 samples that its border rule needs."""

CAMBI_SCALES = 5

CAMBI_WORKGROUP = 64
"""Threads of a workgroup of the staged cambi; each has a column of a scale."""

CAMBI_STAGED_WORDS = 3072
"""Words of the histograms of a staged workgroup: 12 KiB, since every device has 16. With the largest window, 96 levels fit."""

CAMBI_LISTS_CONTRASTS = 4
"""The most contrasts that cambi_lists compares."""

CAMBI_LISTS_LEVELS = 8
"""Levels from a texel of the histograms of cambi_lists to the next. A texel has 16: all nine around a place are in one."""

CAMBI_REACH = 32
"""The largest reach of cambi's window, to either side."""

CAMBI_CONTRASTS = 32
"""The most contrasts that are compared: libvmaf's max_log_contrast is 5 at most."""

CAMBI_SELECT_WORKGROUP = 256
"""Threads of a workgroup that looks for the largest contrasts."""

SPEED_WORKGROUP = 64
"""Threads of a workgroup that computes the statistics of a small plane of speed_chroma, on CPUs."""

SPEED_STAGED_WORKGROUP = 256
"""The same on GPUs, where few planes wait for the covariance: three threads share the work of one."""

SPEED_SAMPLES_AT_ONCE = 8
"""Samples of a row that a turn of its loops takes: lavapipe ends the loops of a thread after 65,535 turns."""
