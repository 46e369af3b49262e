// Moves the window over the planes with libvmaf's rounding: horizontally first, then vertically. Each product of a tap and a
// value is rounded to float32, the products are added without loss or nearly so, and the sum of each pass is rounded to float32.
// It is for CPUs and for GPUs.
//
// As in window_strip.glsl, a thread processes EXACT_COLUMNS columns from top to bottom, and filters each row horizontally. From
// row to row it keeps what the vertical pass needs: the sums of the unfinished windows, or the last ten rows. Constant 0:
// workgroup size, which is one subgroup in the strip shape.

layout(local_size_x_id = 0) in;

const int SPAN = EXACT_COLUMNS + 10;

#ifdef INTEGER
#include "window_sums_integer.glsl"
#else
#include "window_sums_exact.glsl"
#endif

#if defined(STAGED) || defined(INTEGER)
#include "window_down_sums.glsl"
#else
#include "window_down_rows.glsl"
#endif

int quantity_of(int m) {
    return m < 2 ? MEAN : SQUARE;
}

// Returns the product of the two means that moment m is near to. It has no meaning for the means themselves.
float near_to(int m, float mean1, float mean2) {
    return m == 2 ? mean1 * mean1 : m == 3 ? mean2 * mean2 : m == 4 ? mean1 * mean2 : 0.0;
}

// Returns the five moments of a row, horizontally filtered.
void filter_across(int row, int last, int column, out float across[5][EXACT_COLUMNS]) {
    float a[SPAN], b[SPAN], map[SPAN];
#ifdef STAGED
    [[unroll]] for (int k = 0; k < SPAN; ++k) {
        a[k] = sample_at(row, min(column + k, width - 1));
        b[k] = sample_at(row + plane, min(column + k, width - 1));
    }
#else
    LOAD_SAMPLES(a, SPAN, row, last, column, 0)
    LOAD_SAMPLES(b, SPAN, row + plane, last, column, 0)
#endif
    [[unroll]] for (int m = 0; m < 5; ++m) {
        int quantity = quantity_of(m);
        [[unroll]] for (int k = 0; k < SPAN; ++k)
            map[k] = m == 0 ? a[k] : m == 1 ? b[k] : m == 2 ? a[k] * a[k] : m == 3 ? b[k] * b[k] : a[k] * b[k];
        [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) {
            Sum sum = NO_SUM;
            [[unroll]] for (int k = 0; k < 11; ++k) sum = with_term(sum, term_across(quantity, k, map[c + k]), k);
            across[m][c] = rounded_across(quantity, sum, near_to(m, across[0][c], across[1][c]));
        }
    }
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * EXACT_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - 10 - top);
    int row = workgroup_id().z * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    Kept kept[5][EXACT_COLUMNS][10];
    float across[5][EXACT_COLUMNS], done[5][EXACT_COLUMNS], sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m)
        [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c)
            [[unroll]] for (int k = 0; k < 10; ++k) kept[m][c][k] = NOTHING_KEPT;
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = 0.0;

    for (int i = 0; i < 10; ++i, row += pitch) {  // rows that complete no window
        filter_across(row, last, column, across);
        [[unroll]] for (int m = 0; m < 5; ++m)
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) keep_row(quantity_of(m), kept[m][c], across[m][c]);
    }
    for (int i = 0; i < rows; ++i, row += pitch) {
        filter_across(row, last, column, across);
        [[unroll]] for (int m = 0; m < 5; ++m)
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) {
                float near = near_to(m, done[0][c], done[1][c]);
                done[m][c] = completed(quantity_of(m), kept[m][c], across[m][c], near);
                keep_row(quantity_of(m), kept[m][c], across[m][c]);
            }
        [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) {
            float accepted[SUMS];
            accept(accepted, Moments(done[0][c], done[1][c], done[2][c], done[3][c], done[4][c]));
            bool inside = column + c < width - 10;
            KEEP_WINDOW(inside, top + i, column + c, accepted[0])
            [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += inside ? accepted[s] : 0.0;
        }
    }
    store_sums(sums);
}
