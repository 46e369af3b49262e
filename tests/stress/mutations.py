"""Faults put into the shaders and the host on purpose, each with the check that has to notice it.

`mutate` puts one after the other into a copy of the tree and runs its check. First it names the mutations whose text the
sources no longer have; these have to follow the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

GATE = "gate"
"""The matrix of scripts/cross_backend_diff.py. Every other check is a test, as pytest names it."""

DEINTERLEAVED = "tests/shaders/test_planes.py::test_deinterleave"
LOSS_PYRAMID = "tests/shaders/test_loss_pyramid.py"
CAMBI = "tests/shaders/test_cambi.py"
SLOW_DEVICE = "tests/backends/test_slow_device.py"
LOSS_WINDOWS = "tests/shaders/test_loss_windows.py"
WINDOWS = "tests/shaders/test_windows.py"


@dataclass(frozen=True)
class Mutation:
    """A fault: `old` occurs once in the file and becomes `new`; `check` must then fail."""

    name: str
    file: str
    old: str
    new: str
    check: str = GATE


def _faults(what: str, file: str, *faults: tuple[str, str, str], check: str = GATE) -> Iterator[Mutation]:
    """Yield faults of one file, each by its name, the text and the changed text; `what` begins their names."""
    for name, old, new in faults:
        yield Mutation(f"{what}: {name}" if what else name, file, old, new, check)


def _include(name: str) -> str:
    return f"shaders/include/{name}.glsl"


FAST_STRIP, FAST_STAGED = _include("window_fast_strip"), _include("window_fast_staged")
STRIP, STAGED, SUM = _include("window_exact_strip"), _include("window_exact_staged"), _include("window_sum")
LOW_FAST, LOW_FAST_STRIP, LOW_FAST_STAGED = (_include(f"decimate_fast{shape}") for shape in ("", "_strip", "_staged"))
LOW_EXACT = _include("decimate_exact")
LOW_PASS, DOWNSCALE, INGEST = "shaders/ms_ssim_decimate.comp", "shaders/ssim_downscale.comp", "shaders/ingest.comp"
NEAR_0 = "tests/shaders/test_windows.py::test_values_near_0_keep_their_digits"
LCS, BORDER, WALK, REDUCE = _include("lcs"), _include("border"), _include("walk"), _include("reduce")
WORKGROUP = _include("workgroup")
DEINTERLEAVE, PSNR = "shaders/deinterleave.comp", "shaders/psnr.comp"
CONSTANTS = "shaders/constants.py"
PLANES, MS_SSIM, SSIM = "vkssim/metrics/dispatches.py", "vkssim/metrics/float_ms_ssim.py", "vkssim/metrics/float_ssim.py"

MUTATIONS = (
    # -- the Gaussian window: taps, the valid region, the seams between workgroups
    *_faults(
        "fast strip window",
        FAST_STRIP,
        ("a tap across", "across += GAUSSIAN[5] * map[c + 5]", "across += GAUSSIAN[4] * map[c + 5]"),
        ("a pair of taps one column off", "+ map[c + MARGIN - k]", "+ map[c + MARGIN - 1 - k]"),
        ("a tap down", "open[m][0][c] + GAUSSIAN[MARGIN] *", "open[m][0][c] + GAUSSIAN[9] *"),
        ("the last tap down lost", "done[m][c] = open[m][0][c] + GAUSSIAN[MARGIN] * across", "done[m][c] = open[m][0][c]"),
        ("last column of windows lost", "column + c < width - MARGIN", "column + c < width - 11"),
        ("a column of windows too many", "column + c < width - MARGIN", "column + c < width - 9"),
        ("last row of windows lost", "min(strip, height - MARGIN - top)", "min(strip, height - 11 - top)"),
        ("last row of each strip lost", "for (int i = -MARGIN; i < rows;", "for (int i = -MARGIN; i < rows - 1;"),
        ("the reference read for both planes", "LOAD_SAMPLES(b, SPAN, row + plane,", "LOAD_SAMPLES(b, SPAN, row,"),
        ("the next frame's plane", "workgroup_id().z * 2 * plane", "workgroup_id().z * plane"),
    ),
    *_faults(
        "fast staged window",
        FAST_STAGED,
        ("a tap across", "float across = GAUSSIAN[0] * column_sum[w]", "float across = GAUSSIAN[1] * column_sum[w]"),
        ("the last tap across lost", "k < SIDE; ++k) across +=", "k < 10; ++k) across +="),
        ("a tap down", "+ GAUSSIAN[MARGIN] * moments[m]", "+ GAUSSIAN[9] * moments[m]"),
        ("workgroups overlap by a column", "int(gl_WorkGroupID.x) * WINDOWS;", "int(gl_WorkGroupID.x) * (WINDOWS - 1);"),
        ("last column of windows lost", "width - MARGIN - first_column)", "width - 11 - first_column)"),
        ("last row of a strip read twice", "rows + MARGIN - 1) * pitch", "rows + MARGIN - 2) * pitch"),
    ),
    *_faults(
        "strip window",
        STRIP,
        ("a tap across", "add_products(sums, k, values)", "add_products(sums, min(k, 9), values)"),
        ("a row lost before the first window", "i < MARGIN; ++i, row += pitch", "i < 9; ++i, row += pitch"),
        ("the last row down", "kept[first + k]", "kept[first + min(k, 9)]"),
        ("a tap down", "add_products(sums, k, kept", "add_products(sums, max(k, 1), kept"),
        ("every second row lost", "kept[c][MARGIN + r] =", "kept[c][MARGIN] ="),
        ("a column of windows too many", "column + c < width - MARGIN", "column + c < width - 9"),
        ("a row of windows too many", " && i + r < rows;", ";"),
        ("last row of each strip lost", "i + r < rows;", "i + r < rows - 1;"),
    ),
    Mutation(
        "strip window: rows that are read ahead count",
        _include("read_ahead"),
        "width < 0 ? float(bits) : 0.0",
        "width < 0 ? 0.0 : float(bits)",
    ),
    *_faults(
        "staged window",
        STAGED,
        ("the last tap down", "open[m][0], products[0]", "open[m][0], products[1]"),
        ("a tap down", "products[min(MARGIN - 1 - k, k + 1)]", "products[min(8 - min(k, 8), k + 1)]"),
        ("a column of windows too many", "column < width - MARGIN", "column < width - 9"),
        ("last row of each strip lost", "for (int i = 0; i < rows;", "for (int i = 0; i < rows - 1;"),
        ("a row read twice", "row = min(row + pitch, last_row)", "row = min(row + pitch, last_row - pitch)"),
        ("words of 8 bits not moved", "8u * uint(column & 3)", "0u"),
        ("words of 16 bits not moved", "16u * uint(column & 1)", "0u"),
    ),
    *_faults(
        "sums",
        SUM,
        ("a tap", "GAUSSIAN[tap], value", "GAUSSIAN[min(tap, 9)], value"),
        ("the rest is not added", "total = coarse + sum.rest", "total = coarse"),
    ),
    Mutation("sums: no products", _include("rounding"), "return products.x", "return products.y"),
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
    *_faults(
        "",
        LCS,
        ("variance not clamped", "variance1 = max(0.0, m.square1 - mean1_squared)", "variance1 = m.square1 - mean1_squared"),
        ("negative covariance of flat windows kept", "covariance < 0.0 && geometric <= 0.0", "false"),
        ("every negative covariance taken for 0", "covariance < 0.0 && geometric <= 0.0", "covariance < 0.0"),
        ("C2 in place of C3", "geometric + C3)", "geometric + C2)"),
    ),
    *_faults(
        "",
        "shaders/ssim.comp",
        ("c and s exchanged", "float[](product, lcs.x, lcs.y, lcs.z)", "float[](product, lcs.x, lcs.z, lcs.y)"),
        ("l c s without c", "(lcs.y + (1.0 - lcs.y) * lcs.z)", "lcs.z"),
    ),
    *_faults(
        "",
        "shaders/ms_ssim.comp",
        ("c and s exchanged", "float[](sums.x, sums.y, sums.z,", "float[](sums.x, sums.z, sums.y,"),
        ("small values not counted", "counts = vec3(small)", "counts = vec3(0.0)"),
    ),
    *_faults(
        "values near 0",
        "shaders/ms_ssim.comp",
        ("added as their distance from 1", "lessThan(window.values, window.deficits)", "bvec3(false)"),
        check=NEAR_0,
    ),
    *_faults(
        "values near 0",
        LCS,
        ("l", "2.0 * mean_product + C1", "mean_product + C1"),
        ("s", "covariance + C3)", "covariance + C2)"),
        check=NEAR_0,
    ),
    # -- decimation: taps, phase, border
    *_faults(
        "fast low-pass",
        LOW_FAST,
        ("a tap down", "open[0] + LOW_PASS[8] * even", "open[0] + LOW_PASS[7] * even"),
        ("the outermost tap down lost", "vec4 done = open[0] + LOW_PASS[8] * even", "vec4 done = open[0]"),
    ),
    *_faults(
        "fast strip low-pass",
        LOW_FAST_STRIP,
        ("a tap across lost", "k < 9; ++k) total +=", "k < 8; ++k) total +="),
        ("odd rows kept", "mirror(2 * (top + pair) + 4 + odd,", "mirror(2 * (top + pair) + 5 + odd,"),
        ("left fold lost", "mirrored >= 0 ? LOW_PASS[k] + LOW_PASS[mirrored]", "mirrored >= 0 ? LOW_PASS[k]"),
        ("right fold lost", "mirrored <= 8 ? LOW_PASS[k] + LOW_PASS[mirrored]", "mirrored <= 8 ? LOW_PASS[k]"),
        ("-1 reads 1", "int mirrored = 7 - 4 * column - k", "int mirrored = 8 - 4 * column - k"),
        ("n reads n-2", "int mirrored = 2 * room + 9 - k", "int mirrored = 2 * room + 8 - k"),
    ),
    *_faults(
        "fast staged low-pass",
        LOW_FAST_STAGED,
        ("a tap across lost", "k < 9; ++k) total +=", "k < 8; ++k) total +="),
        ("odd columns kept", "column_sum[2 * c + k]", "column_sum[2 * c + k + 1]"),
        ("odd rows kept", "mirror(2 * (top + chunk) + 4 + i,", "mirror(2 * (top + chunk) + 5 + i,"),
        (
            "no mirror at the right border",
            "clamp(mirror(column + j, width), 0, width - 1)",
            "clamp(mirror(column + j, width + 8), 0, width - 1)",
        ),
    ),
    *_faults(
        "exact low-pass",
        LOW_EXACT,
        ("a tap", "LOW_PASS_TABLE[4 - distance][k]", "LOW_PASS_TABLE[4 - distance][min(k, 7)]"),
        ("odd rows kept", "mirror(2 * (top + pair) + 4 + odd,", "mirror(2 * (top + pair) + 5 + odd,"),
        ("a row's sum for the wrong output", "plus(even0, odd1)", "plus(even0, odd3)"),
        ("-1 reads 1", "loaded[7 - i]", "loaded[8 - i]"),
        ("n reads n-2", "int mirrored = i - 1 - 2 * past", "int mirrored = i - 2 - 2 * past"),
    ),
    Mutation(
        "exact low-pass: the rests of the products lost",
        LOW_EXACT,
        "total = done.multiple + done.rest",
        "total = done.multiple",
        "tests/shaders/test_planes.py::test_decimate",
    ),
    *_faults(
        "border",
        BORDER,
        ("-1 reads 1", "index < 0 ? -1 - index : index", "index < 0 ? -index : index"),
        ("n reads n-2", "2 * size - 1 - index", "2 * size - 2 - index"),
    ),
    # -- squared differences
    *_faults(
        "psnr",
        PSNR,
        ("the reference read for both planes", "unit_at(place + plane)", "unit_at(place)"),
        ("last row of each strip lost", "min(strip, height - top); rows > 0", "min(strip, height - top); rows > 1"),
        ("a sample beyond the width counts", "clamp(count, 0, SAMPLES_PER_WORD)", "SAMPLES_PER_WORD"),
        ("the fourth byte of a word lost", "for (int i = 0; i < 4; ++i)", "for (int i = 0; i < 3; ++i)"),
        ("the upper sample of a word lost", "for (int i = 0; i < 2; ++i)", "for (int i = 0; i < 1; ++i)"),
        ("high halves of squares lost", "sums.high += square >> 16;", ""),
        ("the carry of the low halves lost", "sums.high + (sums.low >> 16)", "sums.high"),
        ("leading digits of floats lost", "store_sums(float[](rest, leading,", "store_sums(float[](rest, 0.0,"),
    ),
    Mutation(
        "psnr: the next frame's plane",
        PSNR,
        "* 2 * plane + top",
        "* plane + top",
        "tests/shaders/test_psnr.py::test_every_size",
    ),
    *_faults(
        "psnr",
        PSNR,
        ("what is left of floats lost", "store_sums(float[](rest, leading,", "store_sums(float[](0.0, leading,"),
        (
            "digits of floats of each thread's own size",
            "leading_digits(sums.exact.value, most_of_group(sums.exact.value))",
            "leading_digits(sums.exact.value, sums.exact.value)",
        ),
        ("the error of each addition lost", "(sums.exact.value - leading) + sums.exact.error", "sums.exact.value - leading"),
        check="tests/shaders/test_psnr.py::test_floats_are_added_without_rounding",
    ),
    *_faults(
        "vif",
        _include("vif_statistic"),
        ("the rounding of squared means lost", "return high + (low >> 31);", "return high;"),
        ("the quotient not corrected", "quotient += uint(int(floor(", "quotient += 0u * uint(int(floor("),
        ("flat windows counted as textured", "if (v1 < VIF_NOISE)", "if (v1 < 0)"),
        ("the carry of the halves of flat windows lost", "sums.flat_high + (sums.flat_low >> 16)", "sums.flat_high"),
    ),
    Mutation(
        "vif: the limit of the gain lost",
        _include("vif_statistic"),
        "uint(c) > limit_low",
        "false",
        "tests/shaders/test_vif.py::test_every_depth_and_limit",
    ),
    Mutation("vif: a tap of another scale", _include("vif"), "int(SCALE) * VIF_TAPS_OF_A_SCALE + distance", "distance"),
    Mutation("vif: the carry of the lower halves lost", _include("vif"), "((low + half_unit) >> shift)", "0u"),
    Mutation("vif: the edge sample repeated", _include("edge"), "2 * size - 2 - place", "2 * size - 1 - place"),
    Mutation("vif: the second sample of a word lost", _include("integers"), "16 * (column & 1), 16) >>", "0, 16) >>"),
    *_faults(
        "vif strip",
        _include("vif_strip"),
        ("a tap on one side alone", "values[c + MARGIN - d] + values", "values[c + MARGIN + d] + values"),
        ("columns beyond the width counted", "column < end && y < height", "y < height"),
        ("rows beyond the height counted", "column < end && y < height", "column < end"),
        ("the product of the reference alone", "above * above, above.x * above.y", "above * above, above.x * above.x"),
        ("the rounding of means lost", "(means + ((1u << mean_shift) >> 1)) >> mean_shift", "means >> mean_shift"),
        ("the left edge not mirrored", "first == STEP ?", "false ?"),
        ("the right edge not mirrored", "i == edge + beyond ?", "false ?"),
        ("the columns of the last step lost", "moments[q][i + COLUMNS];", "moments[q][i];"),
    ),
    *_faults(
        "vif staged",
        _include("vif_staged"),
        ("a window of the margin counted", "2 * pair < columns) {", "2 * pair < columns + 2) {"),
        ("a window beyond the width counted", "first + 2 * pair + c < width", "true"),
        ("the distorted plane read for both", "uvec2(integer_at(start, column)", "uvec2(integer_at(start + plane, column)"),
        ("the oldest sums never move out", "sums.means[min(i + 1, WIDEST - 1)]", "sums.means[i]"),
        ("a row of another strip counted", "row + window_row < rows && ", ""),
    ),
    *_faults(
        "vif decimate",
        "shaders/vif_decimate.comp",
        ("every row in place of every second", "mirrored(2 * y + distance", "mirrored(y + distance"),
        ("no words beyond the unit", "clamp(first + i, 0, last)", "clamp(first, 0, last)"),
        ("the rounding of a row lost", "uint sum = 32768u;", "uint sum = 0u;"),
    ),
    Mutation(
        "vif: the sums of a workgroup in one place",
        "shaders/vif.comp",
        "first_partial + workgroup * SUMS + sum",
        "first_partial + workgroup * SUMS",
    ),
    *_faults(
        "stores",
        _include("store"),
        ("nothing stored", "height > 0 ? value : 0u;", "0u;"),
        ("all stored at the first place", "height > 0 ? value : 0;", "0;"),
        ("no four words stored", "height > 0 ? value : uvec4(0u);", "uvec4(0u);"),
    ),
    *_faults(
        "motion",
        "shaders/motion.comp",
        ("a half lost", "(low + (1 << (shift - 1)))", "low"),
        ("a half of columns of 8 bits lost", "int sum = 128;", "int sum = 0;"),
        ("the digits of a sum exchanged", "float(sum & 0xffffu), float(sum >> 16)", "float(sum >> 16), float(sum & 0xffffu)"),
    ),
    *_faults(
        "motion strip",
        _include("motion_strip"),
        ("the batch's own frame in place of the lead", "frame < 0 ? lead : sampled", "sampled"),
        ("the edge sample repeated", "values[2 * REACH - i]", "values[2 * REACH - 1 - i]"),
        ("columns beyond the width counted", "sum += first + c < width ?", "sum += true ?"),
    ),
    *_faults(
        "motion staged",
        _include("motion_staged"),
        ("the frame itself in place of the one before", "words[(frame - distance) * 2", "words[frame * 2"),
        ("columns of a margin counted twice", "thread >= REACH && thread <", "thread >= REACH - 1 && thread <"),
    ),
    *_faults(
        "cambi levels",
        "shaders/cambi_levels.comp",
        ("the reference's plane", "(2 * workgroup_id().z + 1) * blocks_of", "2 * workgroup_id().z * blocks_of"),
        ("dither kept", "dither != 0 ? mean : here[i]", "here[i]"),
        ("histograms of an earlier batch", "histograms[z * cleared + i] = 0u;", ""),
        ("the second half of a block lost", "second ? uvec3(pair.zw, next.x) : pair.xyz", "pair.xyz"),
        ("the mean of the edge with what lies beyond", "BLOCK * block + i < columns ? values[i] : values[i - 1]", "values[i]"),
        check=CAMBI,
    ),
    *_faults(
        "cambi flat",
        "shaders/cambi_flat.comp",
        ("the lower neighbour not compared", "here.samples[i] == below.samples[i])", "true)"),
        ("a row of the window lost", "counts += found - rows[0];", "counts += found - rows[1];"),
        ("the windows of all columns alike", "of_window -= of_columns[i];", "of_window -= of_columns[i + SIDE - 1];"),
        ("the flat places of other rows", "uvec4 words = blocks_here[0];", "uvec4 words = blocks_here[1];"),
        check=CAMBI,
    ),
    *_faults(
        "cambi places",
        "shaders/cambi_places.comp",
        ("the reference's plane", "(2 * workgroup_id().z + 1) * plane", "2 * workgroup_id().z * plane"),
        ("dither kept", "dither != 0 ? values[i + 1] : values[i]", "values[i]"),
        ("histograms of an earlier batch", "histograms[z * cleared / 4 + i] = uvec4(0u);", ""),
        ("contrasts of an earlier batch", "values[z * frame_values / 4 + i] = vec4(0.0);", ""),
        (
            "the second half of a block lost",
            "second ? around[later >> 2][later & 3] :",
            "false ? around[later >> 2][later & 3] :",
        ),
        (
            "the mean of the edge with what lies beyond",
            "i - REACH < columns ? values[i] : values[i - 1]",
            "i - REACH < pitch * 16 ? values[i] : values[i - 1]",
        ),
        ("the lower neighbour not compared", "&& levels[place] == below[place]", "&& true"),
        ("a row of the window lost", "found[word] - rows_of_equals[0][word]", "found[word] - rows_of_equals[1][word]"),
        ("the flat places of other rows", "uvec4 words = pending[0];", "uvec4 words = pending[PENDING];"),
        (
            "the columns between two samples kept",
            "of_columns[2 * i + SIDE] - of_columns[2 * i + 1]",
            "of_columns[2 * i + SIDE]",
        ),
        check=CAMBI,
    ),
    *_faults(
        "cambi mode",
        "shaders/cambi_mode.comp",
        ("specks kept in columns", "mode(above.modes[i], here.modes[i]", "mode(here.modes[i], here.modes[i]"),
        ("the place next to a flat one", "| here.samples[i] & FLAT", "| here.samples[i ^ 1] & FLAT"),
    ),
    Mutation("cambi: the next block", _include("blocks"), "return blocks[block];", "return blocks[block + 1];"),
    Mutation("cambi: the other sample of a word", _include("cambi"), "16 * (column & 1), 16)", "16 * (~column & 1), 16)"),
    *_faults(
        "cambi",
        "shaders/cambi.comp",
        ("a column of the window lost", "last = first + 2 * reach,", "last = first + 2 * reach - 1,"),
        ("the row that leaves kept", "if (y > top) count_row", "if (y < 0) count_row"),
        ("levels below not compared", "int other = max(above, below)", "int other = above"),
        ("the band of levels above lost", "left_over &= left_over - 1u", "left_over = 0u"),
    ),
    *_faults(
        "cambi lists",
        "shaders/cambi_lists.comp",
        ("the window a column further", "clamp(column - REACH, 0,", "clamp(column - REACH + 1, 0,"),
        ("counts of too many columns in bytes", "step % AT_ONCE == AT_ONCE - 1 ||", ""),
        ("a level in one texel only", "computed(of_earlier + added)", "computed(of_earlier)"),
        ("the upper levels of a texel not reached", "int distance = 4 >> stage;", "int distance = 2 >> stage;"),
        ("levels below not compared", "max(around[CONTRASTS + d], around[CONTRASTS - d])", "around[CONTRASTS + d]"),
        ("the places of the earlier threads lost", "number += subgroupAdd(of_thread);", "number = subgroupAdd(of_thread);"),
        ("histograms that keep the last rows", "row <= last + SIDE;", "row <= last;"),
        check=CAMBI,
    ),
    Mutation(
        "cambi lists: histograms that begin with other numbers",
        "host/executor.py",
        "buffer.handle, 0, buffer.size, 0)",
        "buffer.handle, 0, buffer.size, 1)",
    ),
    *_faults(
        "cambi select",
        "shaders/cambi_select.comp",
        (
            "the last digit lost",
            "for (int number = 0; number < run; ++number)",
            "for (int number = 0; number < min(run, 2); ++number)",
        ),
        ("contrasts of other digits counted", "four[j] != 0u && (four[j] & before) == known", "four[j] != 0u"),
        ("the rest of the wanted lost", "found_rest = wanted;", "found_rest = 1u;"),
        ("all that are positive added, though fewer count", "uint(positive) < wanted) return;", "uint(positive) > 0u) return;"),
        ("half of a thread's shares lost", "if (share < distance) sums", "if (share < distance / 2) sums"),
        check=f"{CAMBI}::test_the_strongest_contrasts",
    ),
    *_faults(
        "speed",
        "shaders/speed.comp",
        ("the second row lost", "bottom = first_row + y.second * pitch", "bottom = first_row + y.first * pitch"),
        ("the middle of the range lost", "sample_at(row, column) - middle", "sample_at(row, column)"),
        check="tests/shaders/test_speed.py",
    ),
    *_faults(
        "speed blocks",
        "shaders/speed_blocks.comp",
        ("the errors of products lost", "precise float rest = sum.y + (total.y + low);", "precise float rest = 0.0;"),
        ("the last rotations left out", "MAX_ITERATIONS = 500", "MAX_ITERATIONS = 9"),
        ("a row of places that is not moved", "samples[k - 1] = samples[k];", "samples[k - 1] = samples[k - 1];"),
        ("the identity not kept", "reduces && min(j, column) < k", "false"),
        ("columns for rows", "contrast_at(y + j / BLOCK, x + j % BLOCK)", "contrast_at(y + j % BLOCK, x + j / BLOCK)"),
        ("a part of the covariance lost", "rows * (part + 1) / PARTS", "rows * part / PARTS"),
        check="tests/shaders/test_speed.py",
    ),
    Mutation("speed: both planes alike", "shaders/speed_blocks.comp", "(z & 1) * (N", "0 * (N"),
    Mutation(
        "speed: the quotient without its correction's sum",
        _include("exact_division"),
        "corrected = first + rest / b;",
        "corrected = rest / b;",
    ),
    *_faults(
        "adm",
        _include("adm_decouple"),
        ("the gain not limited", "distorted = min(distorted, 2u * reference);", ""),
        ("the limit of the gain lost", "min(restored * uint(gain_limit), kept)", "kept"),
        ("the weight of the other bands", "band == 2 ? diagonal_weight : edge_weight", "edge_weight"),
    ),
    *_faults(
        "adm",
        _include("adm_decouple"),
        ("a fifteenth that does not wrap", ">> 12), 0, 16)", ">> 12), 0, 20)"),
        ("a half in place of libvmaf's 1", "46 - bits) + 1u;", "46 - bits);"),
        check="tests/shaders/test_adm.py",
    ),
    *_faults(
        "adm",
        _include("adm_decouple"),
        ("angles compared in float32", "parallel = compare_exactly(gradient1, gradient2);", "parallel = left >= right;"),
        ("floats not rounded to even", "|| (leading & 1u) != 0u", ""),
        check="tests/shaders/test_adm.py::test_angles_near_a_degree",
    ),
    *_faults(
        "adm",
        _include("adm_wavelet"),
        ("a sample of the other end", "taps.w * values.w", "taps.w * values.x"),
        ("the edge sample not repeated", "2 * size - 1 - place", "2 * size - 2 - place"),
    ),
    Mutation("adm: the carry of 64 bits lost", _include("wide"), "a.y + b.y + uint(low < a.x)", "a.y + b.y"),
    *_faults(
        "adm strip",
        _include("adm_strip"),
        ("a threshold without its left neighbour", "neighbours[part][c] + neighbours[part][c + 1]", "neighbours[part][c + 1]"),
        ("the columns of the edge not mirrored", "edge + 1 ? sums[column - 1]", "edge + 1 ? sums[column]"),
    ),
    *_faults(
        "adm staged",
        _include("adm_staged"),
        ("a threshold without its left neighbour", "shared_neighbours[row & 1][part][thread - 1] +", ""),
        ("the last row lost", "store_workgroup(rows.end - 1);", ""),
    ),
    Mutation("adm: columns that do not count", "shaders/adm.comp", "column >= left && column < band_width() - left", "true"),
    Mutation(
        "adm: the last strip without its last row",
        "shaders/adm.comp",
        "min(rows.first + rows.rows, band_height() - top)",
        "min(rows.first + rows.rows, band_height() - top - 1)",
    ),
    *_faults(
        "adm rows",
        "shaders/adm_rows.comp",
        ("rows that do not count", "if (row < rows)", "if (row < rows - 1)"),
        ("a digit lost", "float(total.y & 0xffffu)", "0.0"),
    ),
    Mutation(
        "adm: rows added before they are rounded",
        "shaders/adm_rows.comp",
        "total = round_shift(total, kind == 1 ? band_shift : mask_shift);",
        "total = uvec2(low_word(total, kind == 1 ? band_shift : mask_shift), 0u);",
        "tests/shaders/test_adm.py",
    ),
    Mutation(
        "blocks: the words of a unit exchanged",
        _include("samples_blocks"),
        "uint[](block.x, block.y, block.z, block.w)",
        "uint[](block.y, block.x, block.z, block.w)",
    ),
    Mutation("psnr: peak of every depth 255", "vkssim/metrics/float_psnr.py", "frame.peak * frame.factor", "255.0"),
    Mutation(
        "psnr: no limit",
        "vkssim/metrics/float_psnr.py",
        "_DB_A_BIT * int(frame.peak).bit_length()",
        "10 * int(frame.peak).bit_length()",
        "tests/metrics/test_float_psnr.py::test_identical_frames_have_the_limit",
    ),
    Mutation(
        "psnr: All is the mean of decibels",
        "vkssim/metrics/plane_metrics.py",
        "total = np.average(scores_of_planes, axis=0, weights=areas)",
        "total = means[0][number][:, 0]",
        "tests/metrics/test_float_psnr.py::test_all_is_that_of_the_mean_noise",
    ),
    # -- downscale and ingest
    *_faults(
        "downscale",
        DOWNSCALE,
        ("box shifted across", "int first_column = column * factor - (factor >> 1)", "int first_column = column * factor"),
        (
            "box shifted down",
            "int first_row = workgroup_id().y * factor - (factor >> 1)",
            "int first_row = workgroup_id().y * factor",
        ),
        ("last column of the box lost", "for (int i = 0; i < factor; ++i)", "for (int i = 0; i < factor - 1; ++i)"),
    ),
    *_faults(
        "ingest",
        INGEST,
        ("times 0.999", "scale * samples[c];", "0.999 * scale * samples[c];"),
        (
            "the distorted plane from the reference",
            "LOAD_SAMPLES(samples, INGEST_COLUMNS, image * plane",
            "LOAD_SAMPLES(samples, INGEST_COLUMNS, (image & ~1) * plane",
        ),
    ),
    *_faults(
        "deinterleave",
        DEINTERLEAVE,
        ("Cr before Cb", "even_bytes(words) :", "even_bytes(words >> 8) :"),
        ("the upper byte of each sample lost", "words.x & 0xffffu", "words.x & 0xffu"),
        ("the distorted plane lost", "workgroup_id().z * plane", "0"),
        ("the last row lost", "POINTWISE_ROWS, height)", "POINTWISE_ROWS, height - 1)"),
        check=DEINTERLEAVED,
    ),
    # -- samples
    *_faults(
        "strip samples",
        _include("samples_blocks"),
        ("16 bits not scaled", "target[i_] = scale * float(", "target[i_] = float("),
        (
            "the wrong half of a word",
            "bitfieldExtract(block_[j_ >> 1], 16 * (j_ & 1), 16)",
            "bitfieldExtract(block_[j_ >> 1], 16 * (~j_ & 1), 16)",
        ),
    ),
    *_faults(
        "staged samples",
        _include("samples_words"),
        (
            "16 bits not scaled",
            "return scale * float(bitfieldExtract(word, 16 * (column & 1), 16))",
            "return float(bitfieldExtract(word, 16 * (column & 1), 16))",
        ),
        ("four of 16 bits not scaled", "return scale * vec4(low & 0xffffu", "return vec4(low & 0xffffu"),
        (
            "four of 8 bits, one twice",
            "bitfieldExtract(word, 16, 8), word >> 24)",
            "bitfieldExtract(word, 16, 8), bitfieldExtract(word, 16, 8))",
        ),
        ("four floats, one twice", "words[first + 2], words[first + 3]", "words[first + 2], words[first + 2]"),
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
    *_faults(
        "sums",
        WALK,
        ("a row of workgroups over the other", "workgroup_id().y * int(gl_NumWorkGroups.x) +", "workgroup_id().y +"),
        ("a frame's over those of the first", "workgroup_id().z * frame_partials +", ""),
    ),
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
    *_faults(
        "",
        CONSTANTS,
        ("a tap of the window", "0.213006, 0.266012,", "0.213006, 0.266112,"),
        ("a tap of the low-pass", "0.266846, 0.602914,", "0.266846, 0.602814,"),
        ("an entry of the low-pass table", "0.160885, 0.363505),", "0.160885, 0.363405),"),
        ("C1", "C1 = (0.01 * L) ** 2", "C1 = (0.011 * L) ** 2"),
        ("C2", "C2 = (0.03 * L) ** 2", "C2 = (0.031 * L) ** 2"),
        ("C3", "C3 = C2 / 2", "C3 = C2"),
        ("alpha of scale 0", "ALPHA = (0.0, 0.0,", "ALPHA = (0.0448, 0.0,"),
        ("beta and gamma of scale 2", "0.2856, 0.3001,", "0.2856, 0.3011,"),
    ),
    Mutation(
        "range of 10 bits: 1023 for 1020",
        "vkssim/types.py",
        "2.0 ** (8 - bits), 2.0**bits - 1)",
        "255.0 / (2.0**bits - 1), 2.0**bits - 1)",
    ),
    Mutation("size after a downscale", "vkssim/metrics/ssim.py", "width // scale + (width & 1),", "width // scale,"),
    Mutation("a negative mean structure clamped unasked", MS_SSIM, '["negative"] == "clamp"', '["negative"] != "clamp"'),
    *_faults(
        "largest sample",
        "shaders/largest_sample.comp",
        ("the last row lost", "row > 0; --row", "row > 1; --row"),
        ("the distorted plane not looked at", "workgroup_id().z * plane + top", "(workgroup_id().z & ~1) * plane + top"),
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
        "host/submissions.py",
        "DispatchPart(whole.number, row, layer,",
        "DispatchPart(whole.number, 0, layer,",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    *_faults(
        "divided work",
        WORKGROUP,
        ("kernels begin at the first row", "first_workgroup_y, first_workgroup_z)", "0, first_workgroup_z)"),
        ("kernels begin at the first frame", "first_workgroup_y, first_workgroup_z)", "first_workgroup_y, 0)"),
        check=f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation(
        "divided work: every part begins at workgroup 0",
        "host/bound_plan.py",
        "_FIRST_WORKGROUP.pack(part.first_row, part.first_layer)",
        "_FIRST_WORKGROUP.pack(0, 0)",
        f"{SLOW_DEVICE}::test_short_submissions_change_no_bit",
    ),
    Mutation("sums added in float32", "vkssim/metrics/base.py", "axis=1, dtype=np.float64)", "axis=1, dtype=np.float32)"),
    *_faults(
        "",
        MS_SSIM,
        ("windows of a scale", "(width - MARGIN) * (height - MARGIN)", "(width - MARGIN) * (height - MARGIN + 1)"),
        (
            "sums of a scale written where another's are",
            "first = _SUMS * sum(groups[:scale])",
            "first = _SUMS * sum(groups[1:scale])",
        ),
        ("half of an odd side rounded down", "((width + 1) // 2, (height + 1) // 2)", "(width // 2, (height + 1) // 2)"),
        ("precision ignored", 'Precision(self._options["precision"])', "Precision.FAST"),
    ),
    *_faults(
        "push constant",
        PLANES,
        (
            "from the reference to the distorted plane",
            '"plane": source.plane_bytes // unit',
            '"plane": source.plane_bytes // unit - source.row_bytes // unit',
        ),
        ("width", '"width": source.width,', '"width": source.width - 1,'),
        ("weight of the box", "weight=1.0 / factor**2", "weight=1.0 / (factor**2 + 1)"),
        ("sums of a frame", "frame_partials=target.frame_bytes // 4", "frame_partials=target.frame_bytes // 4 - 4"),
    ),
    *_faults(
        "",
        PLANES,
        (
            "decimation of one plane only",
            "groups, source.count, label=label",
            "groups, 1, label=label",
        ),
        ("ingest dispatched once too often", "return first, second", "return first, second, second"),
    ),
    Mutation("CPU reference: a border", "vkssim/metrics/window.py", "2 * length - 1 - folded", "2 * length - 2 - folded"),
    # -- what scores no clip
    Mutation(
        "map: rows of windows",
        _include("map"),
        "row * (width - SIDE + 1) + column",
        "row * (width - SIDE) + column",
        f"{WINDOWS}::test_a_map_has_every_window",
    ),
    Mutation(
        "staged map of the 8x8 window: a column off",
        _include("uniform_staged"),
        "top + row, first_column + across + w, lacking[0])",
        "top + row, first_column + across + w - 1, lacking[0])",
        f"{WINDOWS}::test_a_map_has_every_window",
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
    *_faults(
        "collect",
        "shaders/loss_collect.comp",
        ("a mirrored tap lost", " + low_pass(-1 - index - centre)", ""),
        ("a tap of the inner rows lost", "if (k >= -4 && k <= 4)", "if (k >= -4 && k <= 3)"),
        ("n reads n-2", "2 * size - 1 - index - centre", "2 * size - 2 - index - centre"),
        check=f"{LOSS_PYRAMID}::test_collect",
    ),
    Mutation(
        "loss: the inner workgroups' reference",
        _include("loss_staged"),
        "y[slot] = reference[column_start + (first_row + slot) * pitch];",
        "y[slot] = distorted[column_start + (first_row + slot) * pitch];",
        f"{LOSS_WINDOWS}::test_every_size",
    ),
)
