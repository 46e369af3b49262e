// Filters columns and rows in the shape for GPUs: a thread has a column of samples, whose sums it shares row by row with its
// neighbours, and a column of windows.
//
// The samples of a column move through registers, so that each is read once for each strip.

const int WIDEST = 17;

shared uvec4 filtered[2][VIF_WORKGROUP];

uint both_at(int row, int column) {
    int start = workgroup_id().z * 2 * plane + mirrored(row, height) * pitch;
    return integer_at(start, column) | integer_at(start + plane, column) << 16;
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int columns = VIF_WORKGROUP - 2 * MARGIN;
    int column = workgroup_id().x * columns + thread - MARGIN;  // of the samples
    int read_column = clamp(mirrored(column, width), 0, width - 1);
    bool has_window = thread >= MARGIN && thread < VIF_WORKGROUP - MARGIN && column < width;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);
    VifSums sums = VifSums(0u, 0u, 0u, 0u, 0u);

    const int LENGTH = 2 * MARGIN + 1;
    uint samples[WIDEST];
    [[unroll]] for (int i = 1; i < WIDEST; ++i) {
        if (i < LENGTH) samples[i] = both_at(top - MARGIN + i - 1, read_column);
    }
    for (int row = 0; row < rows; ++row) {
        [[unroll]] for (int i = 1; i < WIDEST; ++i) {
            if (i < LENGTH) samples[i - 1] = samples[i];
        }
        samples[LENGTH - 1] = both_at(top + row + MARGIN, read_column);

        uvec2 means = uvec2(0u);
        uvec3 lows = uvec3(0u), highs = uvec3(0u);
        [[unroll]] for (int i = 0; i < WIDEST; ++i) {
            if (i < LENGTH) {
                uint weight = tap(abs(i - MARGIN));
                uvec2 both = uvec2(samples[i] & 0xffffu, samples[i] >> 16);
                uvec3 products = uvec3(both * both, both.x * both.y);
                means += weight * both;
                lows += weight * (products & 0xffffu);
                if (FORMAT != UINT8) highs += weight * (products >> 16);
            }
        }
        means = (means + ((1u << mean_shift) >> 1)) >> mean_shift;
        uvec3 squares;
        [[unroll]] for (int i = 0; i < 3; ++i) squares[i] = round_halves(highs[i], lows[i], square_shift);
        filtered[row & 1][thread] = uvec4(means.x | means.y << 16, squares);
        barrier();  // one is enough: the next row has the other half of the memory

        if (has_window) {
            means = uvec2(0u);
            lows = highs = uvec3(0u);
            [[unroll]] for (int i = 0; i < WIDEST; ++i) {
                if (i < LENGTH) {
                    uint weight = tap(abs(i - MARGIN));
                    uvec4 around = filtered[row & 1][thread + i - MARGIN];
                    means += weight * uvec2(around.x & 0xffffu, around.x >> 16);
                    lows += weight * (around.yzw & 0xffffu);
                    highs += weight * (around.yzw >> 16);
                }
            }
            [[unroll]] for (int i = 0; i < 3; ++i) squares[i] = round_halves(highs[i], lows[i], 16);
            add_window(sums, means.x, means.y, squares);
        }
    }
    store_window_sums(sums);
}
