// Moves the window over two planes in float32, in the shape for CPUs: one thread processes a strip of STRIP_COLUMNS columns from top
// to bottom, without barriers and without shared memory.
//
// Each row is loaded once, filtered horizontally in registers, and added to the ten unfinished windows that contain it. It
// completes the eleventh, which goes to `accept`. This transposed filter needs no ring of rows, and its shift costs nothing.
//
// Constant 0: workgroup size, which is one subgroup.

layout(local_size_x_id = 0) in;

#include "read_ahead.glsl"

const int SPAN = STRIP_COLUMNS + MARGIN;

// Adds the row to the unfinished windows of each moment. `done` receives the moments of the windows that the row completes.
void add_row(int row, int last, int column, inout float open[5][MARGIN][STRIP_COLUMNS], out float done[5][STRIP_COLUMNS]) {
    float a[SPAN], b[SPAN], map[SPAN];
    LOAD_SAMPLES(a, SPAN, row, last, column, 0)
    LOAD_SAMPLES(b, SPAN, row + plane, last, column, 0)
    [[unroll]] for (int m = 0; m < 5; ++m) {
        [[unroll]] for (int i = 0; i < SPAN; ++i)
            map[i] = m == 0 ? a[i] : m == 1 ? b[i] : m == 2 ? a[i] * a[i] : m == 3 ? b[i] * b[i] : a[i] * b[i];
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            float across = GAUSSIAN[0] * (map[c] + map[c + MARGIN]);
            [[unroll]] for (int k = 1; k < 5; ++k) across += GAUSSIAN[k] * (map[c + k] + map[c + MARGIN - k]);
            across += GAUSSIAN[5] * map[c + 5];
            done[m][c] = open[m][0][c] + GAUSSIAN[MARGIN] * across;
            [[unroll]] for (int k = 0; k < MARGIN - 1; ++k) open[m][k][c] = open[m][k + 1][c] + GAUSSIAN[MARGIN - 1 - k] * across;
            open[m][MARGIN - 1][c] = GAUSSIAN[0] * across;
        }
    }
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - MARGIN - top);
    int row = workgroup_id().z * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    float open[5][MARGIN][STRIP_COLUMNS], done[5][STRIP_COLUMNS];
    float sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m)
        [[unroll]] for (int k = 0; k < MARGIN; ++k)
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) open[m][k][c] = 0.0;
    float zero = read_ahead(row, rows + MARGIN, last);
    [[unroll]] for (int i = 0; i < SUMS; ++i) sums[i] = zero;

    for (int i = -MARGIN; i < rows; ++i, row += pitch) {
        add_row(row, last, column, open, done);
        if (i < 0) continue;
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            float accepted[SUMS];
            accept(accepted, Moments(done[0][c], done[1][c], done[2][c], done[3][c], done[4][c]));
            bool inside = column + c < width - MARGIN;
            KEEP_WINDOW(inside, top + i, column + c, accepted[0])
            [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += mix(0.0, accepted[s], inside);
        }
    }
    store_sums(sums);
}
