// Moves the window over the planes with libvmaf's rounding: horizontally first, then vertically, with exact sums in each pass.
// It is for CPUs and for GPUs.
//
// As in window_strip.glsl, a thread processes EXACT_COLUMNS columns from top to bottom, and adds each horizontally filtered row
// to the unfinished windows. Constant 0: workgroup size, which is one subgroup in the strip shape.

#include "exact.glsl"

layout(local_size_x_id = 0) in;

const int SPAN = EXACT_COLUMNS + 10;
const int LAST_GROWING = 4;  // up to this tap, each tap is larger than the sum of the taps before it

float exact_across(const float map[SPAN], int column) {
    ExactSum sum = ExactSum(0.0, 0.0);
    [[unroll]] for (int k = 0; k < 11; ++k) add_ordered(sum, GAUSSIAN[k], map[column + k], k <= LAST_GROWING);
    return rounded(sum);
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * EXACT_COLUMNS;
    int top = int(gl_WorkGroupID.y) * strip;
    int rows = min(strip, height - 10 - top);
    int row = int(gl_WorkGroupID.z) * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    ExactSum open[5][10][EXACT_COLUMNS];
    float sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m)
        [[unroll]] for (int k = 0; k < 10; ++k)
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) open[m][k][c] = ExactSum(0.0, 0.0);
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = 0.0;

    for (int i = -10; i < rows; ++i, row += pitch) {
        float a[SPAN], b[SPAN], map[SPAN], done[5][EXACT_COLUMNS];
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
            [[unroll]] for (int k = 0; k < SPAN; ++k)
                map[k] = m == 0 ? a[k] : m == 1 ? b[k] : m == 2 ? a[k] * a[k] : m == 3 ? b[k] * b[k] : a[k] * b[k];
            [[unroll]] for (int c = 0; c < EXACT_COLUMNS; ++c) {
                float across = exact_across(map, c);
                ExactSum complete = open[m][0][c];
                add_ordered(complete, GAUSSIAN[10], across, false);
                done[m][c] = rounded(complete);
                [[unroll]] for (int k = 0; k < 9; ++k) {
                    open[m][k][c] = open[m][k + 1][c];
                    add_ordered(open[m][k][c], GAUSSIAN[9 - k], across, 9 - k <= LAST_GROWING);
                }
                open[m][9][c] = ExactSum(GAUSSIAN[0] * across, 0.0);
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
