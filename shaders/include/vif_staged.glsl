// Filters columns and rows in the shape for GPUs: a thread has a column of samples, whose sums go to shared memory two rows at a
// time, and then two neighbouring windows of one of these rows.
//
// A sample is read once per strip and added to the sums of all rows that it belongs to.

const int ROWS = 2;
const int PAIRS = VIF_WORKGROUP / 2;
const int WIDEST = 17;
const int LENGTH = 2 * MARGIN + 1;

shared uvec2 filtered[2][ROWS][4][PAIRS];  // means, reference squared, distorted squared, product: two columns each

// The sums of a column for the rows that are not complete, the oldest first.
struct ColumnSums {
    uvec2 means[WIDEST];
    uvec3 totals[WIDEST];
    uvec3 highs[WIDEST];
};

uvec2 samples_at(int row, int column) {
    int start = workgroup_id().z * 2 * plane + mirrored(min(row, height - 1 + MARGIN), height) * pitch;
    return uvec2(integer_at(start, column), integer_at(start + plane, column));
}

// Adds a sample of both planes, which completes the sums of one row.
void add_samples(inout ColumnSums sums, uvec2 both) {
    uvec3 products = uvec3(both * both, both.x * both.y);
    [[unroll]] for (int i = 0; i < WIDEST; ++i) {
        if (i < LENGTH) {
            uint weight = tap(abs(i - MARGIN));
            bool is_last = i == LENGTH - 1;
            sums.means[i] = (is_last ? uvec2(0u) : sums.means[min(i + 1, WIDEST - 1)]) + weight * both;
            sums.totals[i] = (is_last ? uvec3(0u) : sums.totals[min(i + 1, WIDEST - 1)]) + weight * products;
            if (FORMAT != UINT8) {
                sums.highs[i] = (is_last ? uvec3(0u) : sums.highs[min(i + 1, WIDEST - 1)]) + weight * (products >> 16);
            }
        }
    }
}

// Stores the sums of the complete row.
void store_column(int half_of_memory, int row, ColumnSums sums) {
    int pair = int(gl_LocalInvocationIndex) >> 1, side = int(gl_LocalInvocationIndex) & 1;
    uvec2 means = (sums.means[0] + ((1u << mean_shift) >> 1)) >> mean_shift;
    filtered[half_of_memory][row][0][pair][side] = means.x | means.y << 16;
    [[unroll]] for (int i = 0; i < 3; ++i) {
        uint high = FORMAT == UINT8 ? 0u : sums.highs[0][i];
        filtered[half_of_memory][row][1 + i][pair][side] = round_halves(high, sums.totals[0][i] - (high << 16), square_shift);
    }
}

// Filters the words of two windows along the row, as sums of their upper and of their lower halves.
void filter_pair(int half_of_memory, int row, int quantity, int pair, out uvec2 highs, out uvec2 lows) {
    uint words[WIDEST + 1];
    [[unroll]] for (int i = 0; i <= WIDEST / 2; ++i) {
        if (i <= MARGIN) {
            uvec2 two = filtered[half_of_memory][row][quantity][pair + i];
            words[2 * i] = two.x;
            words[2 * i + 1] = two.y;
        }
    }
    [[unroll]] for (int c = 0; c < 2; ++c) {
        uint total = tap(0) * words[c + MARGIN];  // it may wrap: only the part that the upper halves do not explain is used
        uint high = tap(0) * (words[c + MARGIN] >> 16);
        [[unroll]] for (int d = 1; d <= WIDEST / 2; ++d) {
            if (d <= MARGIN) {
                uint first = words[c + MARGIN - d], second = words[c + MARGIN + d];
                total += tap(d) * (first + second);
                high += tap(d) * ((first >> 16) + (second >> 16));
            }
        }
        highs[c] = high;
        lows[c] = total - (high << 16);
    }
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int columns = VIF_WORKGROUP - 2 * MARGIN;
    int first = workgroup_id().x * columns;
    int read_column = clamp(mirrored(first + thread - MARGIN, width), 0, width - 1);
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);
    int window_row = thread / PAIRS, pair = thread % PAIRS;
    VifSums sums = VifSums(0u, 0u, 0u, 0u, 0u);

    ColumnSums column;
    [[unroll]] for (int i = 0; i < WIDEST; ++i) {
        column.means[i] = uvec2(0u);
        column.totals[i] = column.highs[i] = uvec3(0u);
    }
    for (int i = 0; i < 2 * MARGIN; ++i) add_samples(column, samples_at(top - MARGIN + i, read_column));

    uvec2 next[ROWS];
    [[unroll]] for (int i = 0; i < ROWS; ++i) next[i] = samples_at(top + MARGIN + i, read_column);
    for (int row = 0; row < rows; row += ROWS) {
        int half_of_memory = (row / ROWS) & 1;
        [[unroll]] for (int i = 0; i < ROWS; ++i) {
            add_samples(column, next[i]);
            store_column(half_of_memory, i, column);
            next[i] = samples_at(top + row + ROWS + MARGIN + i, read_column);
        }
        barrier();  // one is enough: the next rows have the other half of the memory

        if (row + window_row < rows && 2 * pair < columns) {
            uvec2 highs[4], lows[4];
            [[unroll]] for (int q = 0; q < 4; ++q) filter_pair(half_of_memory, window_row, q, pair, highs[q], lows[q]);
            [[unroll]] for (int c = 0; c < 2; ++c) {
                if (first + 2 * pair + c < width) {
                    uvec3 squares;
                    [[unroll]] for (int i = 0; i < 3; ++i) squares[i] = round_halves(highs[1 + i][c], lows[1 + i][c], 16);
                    add_window(sums, lows[0][c], highs[0][c], squares);
                }
            }
        }
    }
    store_window_sums(sums);
}
