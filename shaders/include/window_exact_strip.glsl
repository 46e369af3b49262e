// Moves the window over the planes with libvmaf's rounding, in the shape for CPUs: one thread processes a strip of STRIP_COLUMNS
// columns from top to bottom, without barriers and without shared memory.
//
// Each row is filtered horizontally in registers. The last ten of these rows are kept, and filtered vertically with the next one.
// Kept rows take one register each, unfinished sums two. Kept rows are moved once for ROWS rows: more of them gain nothing and
// take longer to compile. The first ten rows have a loop of their own, because Mesa 22.3 would compute l, c and s
// for them and throw them away.
//
// Constant 0: workgroup size, which is one subgroup.

layout(local_size_x_id = 0) in;

#include "read_ahead.glsl"
#include "window_sum.glsl"

const int SPAN = STRIP_COLUMNS + MARGIN;
const int ROWS = 2;  // of windows in an iteration

// Adds the products of a tap to the sums of all moments. The five sums advance side by side, because the additions of one sum wait
// for each other: one sum after the other takes 4 to 9 % more of a CPU's time.
void add_products(inout WindowSum sums[MOMENTS], int tap, const float values[MOMENTS]) {
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) sums[m] = with_product(sums[m], tap_product(tap, values[m]));
}

// Filters a row horizontally.
void filter_across(int row, int last, int column, out float across[STRIP_COLUMNS][MOMENTS]) {
    float a[SPAN], b[SPAN];
    LOAD_SAMPLES(a, SPAN, row, last, column, 0)
    LOAD_SAMPLES(b, SPAN, row + plane, last, column, 0)
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
        WindowSum sums[MOMENTS];
        [[unroll]] for (int m = 0; m < MOMENTS; ++m) sums[m] = empty_sum(m);
        [[unroll]] for (int k = 0; k < SIDE; ++k) {
            float values[MOMENTS];
            [[unroll]] for (int m = 0; m < MOMENTS; ++m) values[m] = moment_of(m, a[c + k], b[c + k]);
            add_products(sums, k, values);
        }
        [[unroll]] for (int m = 0; m < MOMENTS; ++m) across[c][m] = rounded(sums[m], m);
    }
}

// Filters eleven kept rows vertically, from row `first` on.
float[MOMENTS] filter_down(const float kept[MARGIN + ROWS][MOMENTS], int first) {
    WindowSum sums[MOMENTS];
    float means[MOMENTS];
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) sums[m] = empty_sum(m);
    [[unroll]] for (int k = 0; k < SIDE; ++k) add_products(sums, k, kept[first + k]);
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) means[m] = rounded(sums[m], m);
    return means;
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - MARGIN - top);
    int row = workgroup_id().z * 2 * plane + top * pitch;
    int last_row = row + (rows + MARGIN - 1) * pitch;
    int last = unit_of(width - 1);

    float kept[STRIP_COLUMNS][MARGIN + ROWS][MOMENTS], across[STRIP_COLUMNS][MOMENTS];
    float sums[SUMS], lost[SUMS];
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c)
        [[unroll]] for (int k = 0; k < MARGIN; ++k)
            [[unroll]] for (int m = 0; m < MOMENTS; ++m) kept[c][k][m] = 0.0;
    float zero = read_ahead(row, rows + MARGIN, last);
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = lost[s] = zero;

    for (int i = 0; i < MARGIN; ++i, row += pitch) {
        filter_across(row, last, column, across);
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            [[unroll]] for (int k = 0; k < MARGIN - 1; ++k) kept[c][k] = kept[c][k + 1];
            kept[c][MARGIN - 1] = across[c];
        }
    }
    for (int i = 0; i < rows; i += ROWS) {
        [[unroll]] for (int r = 0; r < ROWS; ++r, row += pitch) {
            filter_across(min(row, last_row), last, column, across);
            float of_row[SUMS];
            [[unroll]] for (int s = 0; s < SUMS; ++s) of_row[s] = 0.0;
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
                kept[c][MARGIN + r] = across[c];
                float means[MOMENTS] = filter_down(kept[c], r), accepted[SUMS];
                accept(accepted, Moments(means[0], means[1], means[2], means[3], means[4]));
                bool inside = column + c < width - MARGIN && i + r < rows;
                KEEP_WINDOW(inside, top + i + r, column + c, accepted[0])
                [[unroll]] for (int s = 0; s < SUMS; ++s) of_row[s] += mix(0.0, accepted[s], inside);
            }
            [[unroll]] for (int s = 0; s < SUMS - COUNTS; ++s) add_to_total(sums[s], lost[s], of_row[s]);
            [[unroll]] for (int s = SUMS - COUNTS; s < SUMS; ++s) sums[s] += of_row[s];
        }
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c)
            [[unroll]] for (int k = 0; k < MARGIN; ++k) kept[c][k] = kept[c][k + ROWS];
    }
    store_sums(sums);
}
