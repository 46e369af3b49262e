"""Faults put into the shaders and the host on purpose, each with the check that has to notice it.

`mutate` puts one after the other into a copy of the tree and runs its check. First it names the mutations whose text the
sources no longer have; these have to follow the source.
"""

from __future__ import annotations

from dataclasses import dataclass

GATE = "gate"
"""The matrix of scripts/cross_backend_diff.py. Every other check is a test, as pytest names it."""

DEINTERLEAVED = "tests/shaders/test_deinterleave.py::test_every_size"
LOSS_PYRAMID = "tests/shaders/test_loss_pyramid.py"
SLOW_DEVICE = "tests/backends/test_slow_device.py"
LOSS_WINDOWS = "tests/shaders/test_loss_windows.py"
SSIM_MAP = "tests/shaders/test_ssim_map.py"
UNIFORM = "tests/shaders/test_uniform.py"


@dataclass(frozen=True)
class Mutation:
    """A fault: `old` occurs once in the file and becomes `new`; `check` must then fail."""

    name: str
    file: str
    old: str
    new: str
    check: str = GATE


def _include(name: str) -> str:
    return f"shaders/include/{name}.glsl"


FAST_STRIP, FAST_STAGED = _include("window_fast_strip"), _include("window_fast_staged")
STRIP, STAGED, SUM = _include("window_exact_strip"), _include("window_exact_staged"), _include("window_sum")
LOW_FAST, LOW_FAST_STRIP, LOW_FAST_STAGED = (_include(f"decimate_fast{shape}") for shape in ("", "_strip", "_staged"))
LOW_EXACT = _include("decimate_exact")
LOW_PASS, DOWNSCALE, INGEST = "shaders/ms_ssim_decimate.comp", "shaders/ssim_downscale.comp", "shaders/ingest.comp"
LCS, BORDER, WALK, REDUCE = _include("lcs"), _include("border"), _include("walk"), _include("reduce")
WORKGROUP = _include("workgroup")
DEINTERLEAVE, PSNR = "shaders/deinterleave.comp", "shaders/psnr.comp"
CONSTANTS = "shaders/constants.py"
PLANES, MS_SSIM, SSIM = "vkssim/features/planes.py", "vkssim/features/float_ms_ssim.py", "vkssim/features/float_ssim.py"

MUTATIONS = (
    # -- the Gaussian window: taps, the valid region, the seams between workgroups
    Mutation(
        "fast strip window: a tap across",
        FAST_STRIP,
        "across += GAUSSIAN[5] * map[c + 5]",
        "across += GAUSSIAN[4] * map[c + 5]",
    ),
    Mutation(
        "fast strip window: a pair of taps one column off", FAST_STRIP, "+ map[c + MARGIN - k]", "+ map[c + MARGIN - 1 - k]"
    ),
    Mutation(
        "fast strip window: a tap down", FAST_STRIP, "open[m][0][c] + GAUSSIAN[MARGIN] *", "open[m][0][c] + GAUSSIAN[9] *"
    ),
    Mutation(
        "fast strip window: the last tap down lost",
        FAST_STRIP,
        "done[m][c] = open[m][0][c] + GAUSSIAN[MARGIN] * across",
        "done[m][c] = open[m][0][c]",
    ),
    Mutation(
        "fast strip window: last column of windows lost", FAST_STRIP, "column + c < width - MARGIN", "column + c < width - 11"
    ),
    Mutation(
        "fast strip window: a column of windows too many", FAST_STRIP, "column + c < width - MARGIN", "column + c < width - 9"
    ),
    Mutation(
        "fast strip window: last row of windows lost",
        FAST_STRIP,
        "min(strip, height - MARGIN - top)",
        "min(strip, height - 11 - top)",
    ),
    Mutation(
        "fast strip window: last row of each strip lost",
        FAST_STRIP,
        "for (int i = -MARGIN; i < rows;",
        "for (int i = -MARGIN; i < rows - 1;",
    ),
    Mutation(
        "fast strip window: the reference read for both planes",
        FAST_STRIP,
        "LOAD_SAMPLES(b, SPAN, row + plane,",
        "LOAD_SAMPLES(b, SPAN, row,",
    ),
    Mutation(
        "fast strip window: the next frame's plane", FAST_STRIP, "workgroup_id().z * 2 * plane", "workgroup_id().z * plane"
    ),
    Mutation(
        "fast staged window: a tap across",
        FAST_STAGED,
        "float across = GAUSSIAN[0] * column_sum[w]",
        "float across = GAUSSIAN[1] * column_sum[w]",
    ),
    Mutation("fast staged window: the last tap across lost", FAST_STAGED, "k < SIDE; ++k) across +=", "k < 10; ++k) across +="),
    Mutation("fast staged window: a tap down", FAST_STAGED, "+ GAUSSIAN[MARGIN] * moments[m]", "+ GAUSSIAN[9] * moments[m]"),
    Mutation(
        "fast staged window: workgroups overlap by a column",
        FAST_STAGED,
        "int(gl_WorkGroupID.x) * WINDOWS;",
        "int(gl_WorkGroupID.x) * (WINDOWS - 1);",
    ),
    Mutation(
        "fast staged window: last column of windows lost",
        FAST_STAGED,
        "width - MARGIN - first_column)",
        "width - 11 - first_column)",
    ),
    Mutation(
        "fast staged window: last row of a strip read twice",
        FAST_STAGED,
        "rows + MARGIN - 1) * pitch",
        "rows + MARGIN - 2) * pitch",
    ),
    Mutation("strip window: a tap across", STRIP, "add_products(sums, k, values)", "add_products(sums, min(k, 9), values)"),
    Mutation(
        "strip window: a row lost before the first window", STRIP, "i < MARGIN; ++i, row += pitch", "i < 9; ++i, row += pitch"
    ),
    Mutation("strip window: the last row down", STRIP, "kept[first + k]", "kept[first + min(k, 9)]"),
    Mutation("strip window: a tap down", STRIP, "add_products(sums, k, kept", "add_products(sums, max(k, 1), kept"),
    Mutation("strip window: every second row lost", STRIP, "kept[c][MARGIN + r] =", "kept[c][MARGIN] ="),
    Mutation("strip window: a column of windows too many", STRIP, "column + c < width - MARGIN", "column + c < width - 9"),
    Mutation("strip window: a row of windows too many", STRIP, " && i + r < rows;", ";"),
    Mutation("strip window: last row of each strip lost", STRIP, "i + r < rows;", "i + r < rows - 1;"),
    Mutation(
        "strip window: rows that are read ahead count",
        _include("read_ahead"),
        "width < 0 ? float(bits) : 0.0",
        "width < 0 ? 0.0 : float(bits)",
    ),
    Mutation("staged window: the last tap down", STAGED, "open[m][0], products[0]", "open[m][0], products[1]"),
    Mutation(
        "staged window: a tap down", STAGED, "products[min(MARGIN - 1 - k, k + 1)]", "products[min(8 - min(k, 8), k + 1)]"
    ),
    Mutation("staged window: a column of windows too many", STAGED, "column < width - MARGIN", "column < width - 9"),
    Mutation(
        "staged window: last row of each strip lost", STAGED, "for (int i = 0; i < rows;", "for (int i = 0; i < rows - 1;"
    ),
    Mutation(
        "staged window: a row read twice",
        STAGED,
        "row = min(row + pitch, last_row)",
        "row = min(row + pitch, last_row - pitch)",
    ),
    Mutation("staged window: words of 8 bits not moved", STAGED, "8u * uint(column & 3)", "0u"),
    Mutation("staged window: words of 16 bits not moved", STAGED, "16u * uint(column & 1)", "0u"),
    Mutation("sums: a tap", SUM, "GAUSSIAN[tap], value", "GAUSSIAN[min(tap, 9)], value"),
    Mutation("sums: no products", _include("rounding"), "return products.x", "return products.y"),
    Mutation("sums: the rest is not added", SUM, "total = coarse + sum.rest", "total = coarse"),
    Mutation(
        "sums: the bias of means for squares",
        SUM,
        "moment < 2 ? 1536.0 : 786432.0",
        "1536.0",
        "tests/test_precision.py::test_gratings",
    ),
    Mutation(
        "sums of squared differences: the rest is not added",
        _include("exact"),
        "total = sum.value + sum.error",
        "total = sum.value",
    ),
    # -- luminance, contrast, structure
    Mutation(
        "variance not clamped", LCS, "variance1 = max(0.0, m.square1 - mean1_squared)", "variance1 = m.square1 - mean1_squared"
    ),
    Mutation("negative covariance of flat windows kept", LCS, "covariance < 0.0 && geometric <= 0.0", "false"),
    Mutation("every negative covariance taken for 0", LCS, "covariance < 0.0 && geometric <= 0.0", "covariance < 0.0"),
    Mutation("C2 in place of C3", LCS, "geometric + C3)", "geometric + C2)"),
    Mutation(
        "c and s exchanged",
        "shaders/ssim.comp",
        "float[](product, lcs.x, lcs.y, lcs.z)",
        "float[](product, lcs.x, lcs.z, lcs.y)",
    ),
    Mutation("l c s without c", "shaders/ssim.comp", "(lcs.y + (1.0 - lcs.y) * lcs.z)", "lcs.z"),
    # -- decimation: taps, phase, border
    Mutation("fast low-pass: a tap down", LOW_FAST, "open[0] + LOW_PASS[8] * even", "open[0] + LOW_PASS[7] * even"),
    Mutation(
        "fast low-pass: the outermost tap down lost",
        LOW_FAST,
        "vec4 done = open[0] + LOW_PASS[8] * even",
        "vec4 done = open[0]",
    ),
    Mutation("fast strip low-pass: a tap across lost", LOW_FAST_STRIP, "k < 9; ++k) total +=", "k < 8; ++k) total +="),
    Mutation(
        "fast strip low-pass: odd rows kept",
        LOW_FAST_STRIP,
        "mirror(2 * (top + pair) + 4 + odd,",
        "mirror(2 * (top + pair) + 5 + odd,",
    ),
    Mutation(
        "fast strip low-pass: left fold lost",
        LOW_FAST_STRIP,
        "mirrored >= 0 ? LOW_PASS[k] + LOW_PASS[mirrored]",
        "mirrored >= 0 ? LOW_PASS[k]",
    ),
    Mutation(
        "fast strip low-pass: right fold lost",
        LOW_FAST_STRIP,
        "mirrored <= 8 ? LOW_PASS[k] + LOW_PASS[mirrored]",
        "mirrored <= 8 ? LOW_PASS[k]",
    ),
    Mutation(
        "fast strip low-pass: -1 reads 1",
        LOW_FAST_STRIP,
        "int mirrored = 7 - 4 * column - k",
        "int mirrored = 8 - 4 * column - k",
    ),
    Mutation(
        "fast strip low-pass: n reads n-2", LOW_FAST_STRIP, "int mirrored = 2 * room + 9 - k", "int mirrored = 2 * room + 8 - k"
    ),
    Mutation("fast staged low-pass: a tap across lost", LOW_FAST_STAGED, "k < 9; ++k) total +=", "k < 8; ++k) total +="),
    Mutation("fast staged low-pass: odd columns kept", LOW_FAST_STAGED, "column_sum[2 * c + k]", "column_sum[2 * c + k + 1]"),
    Mutation(
        "fast staged low-pass: odd rows kept",
        LOW_FAST_STAGED,
        "mirror(2 * (top + chunk) + 4 + i,",
        "mirror(2 * (top + chunk) + 5 + i,",
    ),
    Mutation(
        "fast staged low-pass: no mirror at the right border",
        LOW_FAST_STAGED,
        "clamp(mirror(column + j, width), 0, width - 1)",
        "clamp(mirror(column + j, width + 8), 0, width - 1)",
    ),
    Mutation("exact low-pass: a tap", LOW_EXACT, "LOW_PASS_TABLE[4 - distance][k]", "LOW_PASS_TABLE[4 - distance][min(k, 7)]"),
    Mutation(
        "exact low-pass: odd rows kept", LOW_EXACT, "mirror(2 * (top + pair) + 4 + odd,", "mirror(2 * (top + pair) + 5 + odd,"
    ),
    Mutation("exact low-pass: a row's sum for the wrong output", LOW_EXACT, "plus(even0, odd1)", "plus(even0, odd3)"),
    Mutation(
        "exact low-pass: the rests of the products lost",
        LOW_EXACT,
        "total = done.multiple + done.rest",
        "total = done.multiple",
        "tests/shaders/test_ms_ssim_decimate.py::test_every_size",
    ),
    Mutation("exact low-pass: -1 reads 1", LOW_EXACT, "loaded[7 - i]", "loaded[8 - i]"),
    Mutation("exact low-pass: n reads n-2", LOW_EXACT, "int mirrored = i - 1 - 2 * past", "int mirrored = i - 2 - 2 * past"),
    Mutation("border: -1 reads 1", BORDER, "index < 0 ? -1 - index : index", "index < 0 ? -index : index"),
    Mutation("border: n reads n-2", BORDER, "2 * size - 1 - index", "2 * size - 2 - index"),
    # -- squared differences
    Mutation("psnr: the reference read for both planes", PSNR, "unit_at(place + plane)", "unit_at(place)"),
    Mutation(
        "psnr: the next frame's plane",
        PSNR,
        "* 2 * plane + top",
        "* plane + top",
        "tests/shaders/test_psnr.py::test_every_size",
    ),
    Mutation(
        "psnr: last row of each strip lost", PSNR, "min(strip, height - top); rows > 0", "min(strip, height - top); rows > 1"
    ),
    Mutation("psnr: a sample beyond the width counts", PSNR, "clamp(count, 0, SAMPLES_PER_WORD)", "SAMPLES_PER_WORD"),
    Mutation("psnr: the fourth byte of a word lost", PSNR, "for (int i = 0; i < 4; ++i)", "for (int i = 0; i < 3; ++i)"),
    Mutation("psnr: the upper sample of a word lost", PSNR, "for (int i = 0; i < 2; ++i)", "for (int i = 0; i < 1; ++i)"),
    Mutation("psnr: high halves of squares lost", PSNR, "sums.high += square >> 16;", ""),
    Mutation("psnr: the carry of the low halves lost", PSNR, "sums.high + (sums.low >> 16)", "sums.high"),
    Mutation("psnr: leading digits of floats lost", PSNR, "store_sums(float[](rest, leading,", "store_sums(float[](rest, 0.0,"),
    Mutation(
        "psnr: what is left of floats lost",
        PSNR,
        "store_sums(float[](rest, leading,",
        "store_sums(float[](0.0, leading,",
        "tests/shaders/test_psnr.py::test_floats_are_added_without_rounding",
    ),
    Mutation(
        "psnr: digits of floats of each thread's own size",
        PSNR,
        "leading_digits(sums.exact.value, most_of_group(sums.exact.value))",
        "leading_digits(sums.exact.value, sums.exact.value)",
        "tests/shaders/test_psnr.py::test_floats_are_added_without_rounding",
    ),
    Mutation(
        "psnr: the error of each addition lost",
        PSNR,
        "(sums.exact.value - leading) + sums.exact.error",
        "sums.exact.value - leading",
        "tests/shaders/test_psnr.py::test_floats_are_added_without_rounding",
    ),
    Mutation(
        "blocks: the words of a unit exchanged",
        _include("samples_blocks"),
        "uint[](block.x, block.y, block.z, block.w)",
        "uint[](block.y, block.x, block.z, block.w)",
    ),
    Mutation("psnr: peak of every depth 255", "vkssim/features/float_psnr.py", "frame.peak * frame.factor", "255.0"),
    Mutation(
        "psnr: no limit",
        "vkssim/features/float_psnr.py",
        "_DB_A_BIT * int(frame.peak).bit_length()",
        "10 * int(frame.peak).bit_length()",
        "tests/features/test_float_psnr.py::test_identical_frames_have_the_limit",
    ),
    Mutation(
        "psnr: All is the mean of decibels",
        "vkssim/features/plane_metrics.py",
        "scorer.as_requested(self._mean_score(number, means))",
        "scorer.as_requested(means[0][number][:, 0])",
        "tests/features/test_float_psnr.py::test_all_is_that_of_the_mean_noise",
    ),
    # -- downscale and ingest
    Mutation(
        "downscale: box shifted across",
        DOWNSCALE,
        "int first_column = column * factor - (factor >> 1)",
        "int first_column = column * factor",
    ),
    Mutation(
        "downscale: box shifted down",
        DOWNSCALE,
        "int first_row = workgroup_id().y * factor - (factor >> 1)",
        "int first_row = workgroup_id().y * factor",
    ),
    Mutation(
        "downscale: last column of the box lost",
        DOWNSCALE,
        "for (int i = 0; i < factor; ++i)",
        "for (int i = 0; i < factor - 1; ++i)",
    ),
    Mutation("ingest: times 0.999", INGEST, "scale * samples[c];", "0.999 * scale * samples[c];"),
    Mutation(
        "ingest: the distorted plane from the reference",
        INGEST,
        "LOAD_SAMPLES(samples, INGEST_COLUMNS, image * plane",
        "LOAD_SAMPLES(samples, INGEST_COLUMNS, (image & ~1) * plane",
    ),
    Mutation("deinterleave: Cr before Cb", DEINTERLEAVE, "even_bytes(words) :", "even_bytes(words >> 8) :", DEINTERLEAVED),
    Mutation(
        "deinterleave: the upper byte of each sample lost", DEINTERLEAVE, "words.x & 0xffffu", "words.x & 0xffu", DEINTERLEAVED
    ),
    Mutation("deinterleave: the distorted plane lost", DEINTERLEAVE, "workgroup_id().z * plane", "0", DEINTERLEAVED),
    Mutation(
        "deinterleave: the last row lost", DEINTERLEAVE, "POINTWISE_ROWS, height)", "POINTWISE_ROWS, height - 1)", DEINTERLEAVED
    ),
    # -- samples
    Mutation(
        "strip samples: 16 bits not scaled", _include("samples_blocks"), "target[i_] = scale * float(", "target[i_] = float("
    ),
    Mutation(
        "strip samples: the wrong half of a word",
        _include("samples_blocks"),
        "bitfieldExtract(block_[j_ >> 1], 16 * (j_ & 1), 16)",
        "bitfieldExtract(block_[j_ >> 1], 16 * (~j_ & 1), 16)",
    ),
    Mutation(
        "staged samples: 16 bits not scaled",
        _include("samples_words"),
        "return scale * float(bitfieldExtract(word, 16 * (column & 1), 16))",
        "return float(bitfieldExtract(word, 16 * (column & 1), 16))",
    ),
    Mutation(
        "staged samples: four of 16 bits not scaled",
        _include("samples_words"),
        "return scale * vec4(low & 0xffffu",
        "return vec4(low & 0xffffu",
    ),
    Mutation(
        "staged samples: four of 8 bits, one twice",
        _include("samples_words"),
        "bitfieldExtract(word, 16, 8), word >> 24)",
        "bitfieldExtract(word, 16, 8), bitfieldExtract(word, 16, 8))",
    ),
    Mutation(
        "staged samples: four floats, one twice",
        _include("samples_words"),
        "words[first + 2], words[first + 3]",
        "words[first + 2], words[first + 2]",
    ),
    # -- sums of a workgroup and where they go
    Mutation("staged sums: the last subgroup lost", REDUCE, "i < gl_NumSubgroups;", "i < gl_NumSubgroups - 1u;"),
    Mutation(
        "ssim: one thread's sums for the workgroup's",
        "shaders/ssim.comp",
        '#include "window.glsl"',
        '#define subgroupAdd(x) (x)\n#include "window.glsl"',
    ),
    Mutation(
        "workgroups: all rows are the first", WORKGROUP, "ivec3(gl_WorkGroupID)", "ivec3(gl_WorkGroupID.x, 0, gl_WorkGroupID.z)"
    ),
    Mutation(
        "sums: a row of workgroups over the other", WALK, "workgroup_id().y * int(gl_NumWorkGroups.x) +", "workgroup_id().y +"
    ),
    Mutation("sums: a frame's over those of the first", WALK, "workgroup_id().z * frame_partials +", ""),
    # -- the 8x8 window
    Mutation("8x8 window: variances over 64", _include("uniform"), "(SAMPLES * (SAMPLES - 1.0))", "(SAMPLES * SAMPLES)"),
    Mutation(
        "8x8 window, strip: last column lost",
        _include("uniform_strip"),
        "column + c < width - UNIFORM + 1",
        "column + c < width - UNIFORM",
    ),
    Mutation(
        "8x8 window, staged: workgroups overlap by a column",
        _include("uniform_staged"),
        "int(gl_WorkGroupID.x) * COLUMNS;",
        "int(gl_WorkGroupID.x) * (COLUMNS - 1);",
    ),
    Mutation(
        "8x8 window: the estimate's windows",
        "shaders/ssim_uniform.comp",
        '#include "uniform.glsl"',
        '#define ESTIMATE\n#include "uniform.glsl"',
    ),
    Mutation("estimate: every window", "shaders/ssim_estimate.comp", "#define ESTIMATE", ""),
    # -- numbers that both backends share: only libvmaf's scores see them
    Mutation("a tap of the window", CONSTANTS, "0.213006, 0.266012,", "0.213006, 0.266112,"),
    Mutation("a tap of the low-pass", CONSTANTS, "0.266846, 0.602914,", "0.266846, 0.602814,"),
    Mutation("an entry of the low-pass table", CONSTANTS, "0.160885, 0.363505),", "0.160885, 0.363405),"),
    Mutation("C1", CONSTANTS, "C1 = (0.01 * L) ** 2", "C1 = (0.011 * L) ** 2"),
    Mutation("C2", CONSTANTS, "C2 = (0.03 * L) ** 2", "C2 = (0.031 * L) ** 2"),
    Mutation("C3", CONSTANTS, "C3 = C2 / 2", "C3 = C2"),
    Mutation("alpha of scale 0", CONSTANTS, "ALPHA = (0.0, 0.0,", "ALPHA = (0.0448, 0.0,"),
    Mutation("beta and gamma of scale 2", CONSTANTS, "0.2856, 0.3001,", "0.2856, 0.3011,"),
    Mutation(
        "range of 10 bits: 1023 for 1020",
        "vkssim/types.py",
        "2.0 ** (8 - bits), 2.0**bits - 1)",
        "255.0 / (2.0**bits - 1), 2.0**bits - 1)",
    ),
    Mutation("size after a downscale", "vkssim/reference/ssim.py", "width // scale + (width & 1),", "width // scale,"),
    Mutation("a negative mean structure clamped unasked", MS_SSIM, '["negative"] == "clamp"', '["negative"] != "clamp"'),
    Mutation("largest sample: the last row lost", "shaders/largest_sample.comp", "row > 0; --row", "row > 1; --row"),
    Mutation(
        "largest sample: the distorted plane not looked at",
        "shaders/largest_sample.comp",
        "workgroup_id().z * plane + top",
        "(workgroup_id().z & ~1) * plane + top",
    ),
    Mutation(
        "largest sample: the workgroups of a part counted",
        "shaders/largest_sample.comp",
        "groups = columns * ((height + strip - 1) / strip);",
        "groups = columns * int(gl_NumWorkGroups.y);",
        f"{SLOW_DEVICE}::test_a_sample_beyond_the_depth_is_found",
    ),
    # -- the host
    Mutation(
        "divided work: every part begins at the first row",
        "host/division.py",
        "DispatchPart(whole.number, row, layer,",
        "DispatchPart(whole.number, 0, layer,",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation(
        "divided work: kernels begin at the first row",
        WORKGROUP,
        "first_workgroup_y, first_workgroup_z)",
        "0, first_workgroup_z)",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation(
        "divided work: kernels begin at the first frame",
        WORKGROUP,
        "first_workgroup_y, first_workgroup_z)",
        "first_workgroup_y, 0)",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation(
        "divided work: every part begins at workgroup 0",
        "host/binding.py",
        "_FIRST_WORKGROUP.pack(part.first_row, part.first_layer)",
        "_FIRST_WORKGROUP.pack(0, 0)",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation("sums added in float32", "vkssim/features/base.py", "axis=1, dtype=np.float64)", "axis=1, dtype=np.float32)"),
    Mutation("windows of a scale", MS_SSIM, "(width - MARGIN) * (height - MARGIN)", "(width - MARGIN) * (height - MARGIN + 1)"),
    Mutation(
        "sums of a scale written where another's are",
        MS_SSIM,
        "first = _SUMS * sum(groups[:scale])",
        "first = _SUMS * sum(groups[1:scale])",
    ),
    Mutation(
        "half of an odd side rounded down", MS_SSIM, "((width + 1) // 2, (height + 1) // 2)", "(width // 2, (height + 1) // 2)"
    ),
    Mutation(
        "push constant: from the reference to the distorted plane",
        PLANES,
        '"plane": self.plane_bytes // unit',
        '"plane": self.plane_bytes // unit - self.row_bytes // unit',
    ),
    Mutation(
        "push constant: width",
        PLANES,
        '{"width": self.width, "height": self.height}',
        '{"width": self.width - 1, "height": self.height}',
    ),
    Mutation("push constant: weight of the box", PLANES, "weight=1.0 / factor**2", "weight=1.0 / (factor**2 + 1)"),
    Mutation(
        "push constant: sums of a frame",
        PLANES,
        "frame_partials=target.frame_bytes // 4",
        "frame_partials=target.frame_bytes // 4 - 4",
    ),
    Mutation(
        "decimation of one plane only",
        PLANES,
        "groups=(groups_x, ceil_div(target.height, strip)),\n        layers=2",
        "groups=(groups_x, ceil_div(target.height, strip)),\n        layers=1",
    ),
    Mutation("ingest dispatched once too often", PLANES, "return one(0), one(1)", "return one(0), one(1), one(1)"),
    Mutation("precision ignored", MS_SSIM, 'Precision(self._options["precision"])', "Precision.FAST"),
    Mutation("CPU reference: a border", "vkssim/reference/window.py", "2 * length - 1 - folded", "2 * length - 2 - folded"),
    # -- what scores no clip
    Mutation(
        "map: rows of windows",
        _include("keep"),
        "row * (width - SIDE + 1) + column",
        "row * (width - SIDE) + column",
        f"{SSIM_MAP}::test_every_size",
    ),
    Mutation(
        "staged map of the 8x8 window: a column off",
        _include("uniform_staged"),
        "top + row, first_column + across + w, lacking[0])",
        "top + row, first_column + across + w - 1, lacking[0])",
        f"{UNIFORM}::test_a_map_has_every_window",
    ),
    Mutation(
        "loss: the pivot is one sample's",
        _include("loss_pivot"),
        "return max(min(low, high), min(max(low, high), candidates[4]));",
        "return candidates[2];",
        f"{LOSS_WINDOWS}::test_a_dark_sample_in_a_bright_wall",
    ),
    Mutation(
        "loss: a lamp is taken for the pivot",
        _include("loss_pivot"),
        "floatBitsToUint(2.25 * data_range)",
        "floatBitsToUint(2.25e9 * data_range)",
        f"{LOSS_WINDOWS}::test_a_lamp_leaves_the_dark_part_alone",
    ),
    Mutation(
        "strip gradient: maps of each thread's own pivot",
        _include("loss_strip"),
        "window.by_moment.x -= from_plane.x * window.by_moment.y + from_plane.y * window.by_moment.z;",
        "",
        f"{LOSS_WINDOWS}::test_every_size",
    ),
    Mutation(
        "loss: one thread's sums for the workgroup's",
        "shaders/loss_value.comp",
        '#include "loss_walk.glsl"',
        '#define subgroupAdd(x) (x)\n#include "loss_walk.glsl"',
        f"{LOSS_WINDOWS}::test_every_size",
    ),
    Mutation(
        "gradient: one thread's sums for the workgroup's",
        "shaders/loss_gradient.comp",
        '#include "loss_walk.glsl"',
        '#define subgroupAdd(x) (x)\n#include "loss_walk.glsl"',
        f"{LOSS_WINDOWS}::test_every_size",
    ),
    Mutation(
        "gradient: last row of maps lost",
        "shaders/loss_gather.comp",
        "row >= 0 && row < height;",
        "row >= 0 && row < height - 1;",
        f"{LOSS_WINDOWS}::test_every_size",
    ),
    Mutation(
        "average of the wrong two columns",
        "shaders/loss_average.comp",
        "2 * column - (width & 1)",
        "2 * column",
        f"{LOSS_PYRAMID}::test_next_scale",
    ),
    Mutation(
        "means: the last sum lost",
        "shaders/loss_means.comp",
        "i < groups; i += THREADS",
        "i < groups - 1; i += THREADS",
        "tests/shaders/test_loss_means.py::test_power_and_slope",
    ),
    Mutation(
        "collect: a mirrored tap lost",
        "shaders/loss_collect.comp",
        " + low_pass(-1 - index - centre)",
        "",
        f"{LOSS_PYRAMID}::test_collect",
    ),
    Mutation(
        "collect: a tap of the inner rows lost",
        "shaders/loss_collect.comp",
        "if (k >= -4 && k <= 4)",
        "if (k >= -4 && k <= 3)",
        f"{LOSS_PYRAMID}::test_collect",
    ),
    Mutation(
        "loss: the inner workgroups' reference",
        _include("loss_staged"),
        "y[slot] = reference[column_start + (first_row + slot) * pitch];",
        "y[slot] = distorted[column_start + (first_row + slot) * pitch];",
        f"{LOSS_WINDOWS}::test_every_size",
    ),
    Mutation(
        "collect: n reads n-2",
        "shaders/loss_collect.comp",
        "2 * size - 1 - index - centre",
        "2 * size - 2 - index - centre",
        f"{LOSS_PYRAMID}::test_collect",
    ),
)
