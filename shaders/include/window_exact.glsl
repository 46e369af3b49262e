// Moves the window over the planes with libvmaf's rounding: horizontally first, then vertically. Each product of a tap and a
// value is rounded to float32, the products are added without loss or nearly so, and the sum of each pass is rounded to float32.
// It is for CPUs and for GPUs.
//
// As in window_strip.glsl, a thread processes EXACT_COLUMNS columns from top to bottom, and adds each horizontally filtered row
// to the unfinished windows. Constant 0: workgroup size, which is one subgroup in the strip shape.

layout(local_size_x_id = 0) in;

const int SPAN = EXACT_COLUMNS + 10;

#ifdef INTEGER
#include "window_sums_integer.glsl"
#else
#include "window_sums_exact.glsl"
#endif

void main() {
    int column = int(gl_GlobalInvocationID.x) * EXACT_COLUMNS;
    int top = int(gl_WorkGroupID.y) * strip;
    int rows = min(strip, height - 10 - top);
    int row = int(gl_WorkGroupID.z) * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    Sum open[5][10][EXACT_COLUMNS];
    float sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m)
        [[unroll]] for (int k = 0; k < 10; ++k)
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) open[m][k][c] = NO_SUM;
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = 0.0;

    for (int i = -10; i < rows; ++i, row += pitch) {
        float a[SPAN], b[SPAN], map[SPAN], across[5][EXACT_COLUMNS], done[5][EXACT_COLUMNS];
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
            int quantity = m < 2 ? MEAN : SQUARE;
            int first = m == 3 ? 1 : 0, second = m == 2 ? 0 : 1;  // the planes whose product the moment has
            [[unroll]] for (int k = 0; k < SPAN; ++k)
                map[k] = m == 0 ? a[k] : m == 1 ? b[k] : m == 2 ? a[k] * a[k] : m == 3 ? b[k] * b[k] : a[k] * b[k];
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) {
                Sum sum = NO_SUM;
                [[unroll]] for (int k = 0; k < 11; ++k) sum = with_term(sum, term_across(quantity, k, map[c + k]), k);
                float near = m < 2 ? 0.0 : across[first][c] * across[second][c];
                across[m][c] = rounded_across(quantity, sum, near);
                Term terms[11];
                [[unroll]] for (int k = 0; k < 11; ++k)
                    terms[k] = k < 6 ? term_down(quantity, k, across[m][c]) : terms[10 - k];  // the window is symmetric
                near = m < 2 ? 0.0 : done[first][c] * done[second][c];
                done[m][c] = rounded_down(quantity, with_term(open[m][0][c], terms[10], 10), near);
                [[unroll]] for (int k = 0; k < 9; ++k) open[m][k][c] = with_term(open[m][k + 1][c], terms[9 - k], 9 - k);
                open[m][9][c] = with_term(NO_SUM, terms[0], 0);
            }
        }
        if (i < 0) continue;
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
