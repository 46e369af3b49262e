// Filters rows in the shape for CPUs: a thread has STRIP_COLUMNS columns of windows, from top to bottom.

const int SPAN = STRIP_COLUMNS + 16;  // columns that the widest filter reads
const int LAST = STRIP_COLUMNS + 2 * MARGIN;

// Returns the sums of taps times values, for the windows of a thread.
uint[STRIP_COLUMNS] filter_row(uint values[SPAN]) {
    uint sums[STRIP_COLUMNS];
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
        sums[c] = tap(0) * values[c + MARGIN];
        [[unroll]] for (int d = 1; d <= 8; ++d) {
            if (d <= MARGIN) sums[c] += tap(d) * (values[c + MARGIN - d] + values[c + MARGIN + d]);
        }
    }
    return sums;
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = column < width ? min(strip, height - top) : 0;
    VifSums sums = VifSums(0u, 0u, 0u, 0u, 0u);
    int places[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) places[i] = clamp(mirrored(column + i - MARGIN, width), 0, width - 1);

    for (int row = 0; row < rows; ++row) {
        int start = workgroup_id().z * plane + (top + row) * pitch;
        uvec4 around[SPAN];
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            if (i < LAST) around[i] = texelFetch(moments, start + places[i]);
        }
        uint means[2][STRIP_COLUMNS], squares[3][STRIP_COLUMNS];
        uint lows[SPAN], highs[SPAN];
        [[unroll]] for (int q = 0; q < 4; ++q) {
            [[unroll]] for (int i = 0; i < SPAN; ++i) {
                if (i < LAST) lows[i] = around[i][q] & 0xffffu;
                if (i < LAST) highs[i] = around[i][q] >> 16;
            }
            uint low[STRIP_COLUMNS] = filter_row(lows), high[STRIP_COLUMNS] = filter_row(highs);
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
                if (q == 0) {
                    means[0][c] = low[c];
                    means[1][c] = high[c];
                } else {
                    squares[q - 1][c] = round_halves(high[c], low[c], 16);
                }
            }
        }
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            if (column + c < width) {
                add_window(sums, means[0][c], means[1][c], uvec3(squares[0][c], squares[1][c], squares[2][c]));
            }
        }
    }
    store_window_sums(sums);
}
