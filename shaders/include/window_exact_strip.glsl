// Moves the window over the planes with libvmaf's rounding, in the shape for CPUs: one thread processes a strip of STRIP_COLUMNS
// columns from top to bottom, without barriers and without shared memory.
//
// Each row is filtered horizontally in registers. The last ten of these rows are kept, and filtered vertically with the next one.
// Kept rows take one register each, unfinished sums two (docs/adr/0034). The first ten rows have a loop of their own, because
// Mesa 22.3 would compute l, c and s for them and throw them away.
//
// Constant 0: workgroup size, which is one subgroup.

layout(local_size_x_id = 0) in;

#include "window_sum.glsl"

const int SPAN = STRIP_COLUMNS + MARGIN;

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

// Filters ten kept rows and the next one vertically.
float[MOMENTS] filter_down(const float kept[MARGIN][MOMENTS], const float next[MOMENTS]) {
    WindowSum sums[MOMENTS];
    float means[MOMENTS];
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) sums[m] = empty_sum(m);
    [[unroll]] for (int k = 0; k < MARGIN; ++k) add_products(sums, k, kept[k]);
    add_products(sums, MARGIN, next);
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) means[m] = rounded(sums[m], m);
    return means;
}

void keep_row(inout float kept[MARGIN][MOMENTS], const float next[MOMENTS]) {
    [[unroll]] for (int k = 0; k < MARGIN - 1; ++k) kept[k] = kept[k + 1];
    kept[MARGIN - 1] = next;
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - MARGIN - top);
    int row = workgroup_id().z * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    float kept[STRIP_COLUMNS][MARGIN][MOMENTS], across[STRIP_COLUMNS][MOMENTS];
    float sums[SUMS], lost[SUMS];
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c)
        [[unroll]] for (int k = 0; k < MARGIN; ++k)
            [[unroll]] for (int m = 0; m < MOMENTS; ++m) kept[c][k][m] = 0.0;
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = lost[s] = 0.0;

    for (int i = 0; i < MARGIN; ++i, row += pitch) {
        filter_across(row, last, column, across);
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) keep_row(kept[c], across[c]);
    }
    for (int i = 0; i < rows; ++i, row += pitch) {
        filter_across(row, last, column, across);
        float of_row[SUMS];
        [[unroll]] for (int s = 0; s < SUMS; ++s) of_row[s] = 0.0;
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            float means[MOMENTS] = filter_down(kept[c], across[c]), accepted[SUMS];
            keep_row(kept[c], across[c]);
            accept(accepted, Moments(means[0], means[1], means[2], means[3], means[4]));
            bool inside = column + c < width - MARGIN;
            KEEP_WINDOW(inside, top + i, column + c, accepted[0])
            [[unroll]] for (int s = 0; s < SUMS; ++s) of_row[s] += mix(0.0, accepted[s], inside);
        }
        [[unroll]] for (int s = 0; s < SUMS; ++s) add_to_total(sums[s], lost[s], of_row[s]);
    }
    store_sums(sums);
}
