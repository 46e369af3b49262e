// The shape for CPUs: a thread has a row of windows, from left to right. In each step it filters the next columns of samples
// around its row, and then the windows that these complete. The moments of columns stay in registers.

const int ROW_WORDS = 4;  // of eight samples of 16 bits
const int WIDEST = 17;
const int LENGTH = 2 * MARGIN + 1;
const int COLUMNS = STRIP_COLUMNS;  // of a step; blocks of samples begin at multiples of it
const int KEPT = 2 * MARGIN;        // columns before those of a step that its windows need
const int SPAN = COLUMNS + WIDEST - 1;
const int LAST = COLUMNS + KEPT;

uint sample_of(uint words[ROW_WORDS], int c) {
    if (FORMAT == UINT8) return bitfieldExtract(words[c >> 2], 8 * (c & 3), 8);
    return bitfieldExtract(words[c >> 1], 16 * (c & 1), 16) >> sample_shift;
}

// Returns the words with the samples of eight columns from the block that has them.
uint[ROW_WORDS] words_at(int row, int first) {
    uvec4 block = texelFetch(blocks, row + clamp(FORMAT == UINT8 ? first >> 4 : first >> 3, 0, pitch - 1));
    if (FORMAT != UINT8) return uint[](block.x, block.y, block.z, block.w);
    bool is_second = (first & 8) != 0;  // half of a block
    return uint[](is_second ? block.z : block.x, is_second ? block.w : block.y, 0u, 0u);
}

// Filters a column around the row: the means in the halves of a word, then reference squared, distorted squared, product.
uint[4] filter_column(uint references[WIDEST][ROW_WORDS], uint distorteds[WIDEST][ROW_WORDS], int column) {
    uvec2 means = uvec2(0u);
    uvec3 totals = uvec3(0u), highs = uvec3(0u);
    [[unroll]] for (int d = 0; d <= WIDEST / 2; ++d) {
        if (d <= MARGIN) {
            uvec2 above = uvec2(sample_of(references[MARGIN - d], column), sample_of(distorteds[MARGIN - d], column));
            uvec2 below = uvec2(sample_of(references[MARGIN + d], column), sample_of(distorteds[MARGIN + d], column));
            uvec3 first = uvec3(above * above, above.x * above.y), second = uvec3(below * below, below.x * below.y);
            means += tap(d) * (d == 0 ? above : above + below);
            totals += tap(d) * (d == 0 ? first : first + second);
            if (FORMAT != UINT8) highs += tap(d) * (d == 0 ? first >> 16 : (first >> 16) + (second >> 16));
        }
    }
    means = (means + ((1u << mean_shift) >> 1)) >> mean_shift;
    uint moments[4];
    moments[0] = means.x | means.y << 16;
    [[unroll]] for (int i = 0; i < 3; ++i) moments[1 + i] = round_halves(highs[i], totals[i] - (highs[i] << 16), square_shift);
    return moments;
}

// Mirrors columns beyond an edge, of which those from KEPT are new. A branch would cost more: CPUs execute both of its sides.
void mirror_columns(inout uint moments[SPAN], int first) {
    const int STEP = MARGIN > COLUMNS / 2 ? COLUMNS : 0;  // the one that has all columns that the left edge mirrors
    [[unroll]] for (int beyond = 1; beyond <= WIDEST / 2; ++beyond) {
        if (beyond <= MARGIN) {
            int edge = KEPT - STEP;  // the place of column 0
            moments[edge - beyond] = first == STEP ? moments[edge + beyond] : moments[edge - beyond];
        }
    }
    int edge = width - 1 - first + KEPT;  // the place of the last column
    [[unroll]] for (int i = 0; i < SPAN; ++i) {
        [[unroll]] for (int beyond = 1; beyond <= WIDEST / 2; ++beyond) {
            if (i >= KEPT && i < LAST && beyond <= MARGIN && i - 2 * beyond >= 0) {
                moments[i] = i == edge + beyond ? moments[i - 2 * beyond] : moments[i];
            }
        }
    }
}

// Returns the sums of taps times values, for the windows of a step.
uint[COLUMNS] filter_row(uint values[SPAN]) {
    uint sums[COLUMNS];
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        sums[c] = tap(0) * values[c + MARGIN];
        [[unroll]] for (int d = 1; d <= WIDEST / 2; ++d) {
            if (d <= MARGIN) sums[c] += tap(d) * (values[c + MARGIN - d] + values[c + MARGIN + d]);
        }
    }
    return sums;
}

void main() {
    int y = workgroup_id().y * int(gl_WorkGroupSize.x) + int(gl_LocalInvocationID.x);
    int begin = workgroup_id().x * strip, end = min(begin + strip, width);
    int rows[WIDEST];
    [[unroll]] for (int i = 0; i < WIDEST; ++i) {
        if (i < LENGTH) {
            int row = clamp(mirrored(min(y, height - 1) + i - MARGIN, height), 0, height - 1);
            rows[i] = workgroup_id().z * 2 * plane + row * pitch;
        }
    }

    uint moments[4][SPAN];  // of the columns from KEPT before those of the step
    [[unroll]] for (int q = 0; q < 4; ++q) {
        [[unroll]] for (int i = 0; i < SPAN; ++i) moments[q][i] = 0u;
    }
    VifSums sums = VifSums(0u, 0u, 0u, 0u, 0u);
    for (int first = begin - COLUMNS; first < end + MARGIN; first += COLUMNS) {
        uint references[WIDEST][ROW_WORDS], distorteds[WIDEST][ROW_WORDS];
        [[unroll]] for (int i = 0; i < WIDEST; ++i) {
            if (i < LENGTH) {
                references[i] = words_at(rows[i], first);
                distorteds[i] = words_at(rows[i] + plane, first);
            }
        }
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
            uint column[4] = filter_column(references, distorteds, c);
            [[unroll]] for (int q = 0; q < 4; ++q) moments[q][KEPT + c] = column[q];
        }

        uint means[2][COLUMNS], squares[3][COLUMNS];
        [[unroll]] for (int q = 0; q < 4; ++q) {
            mirror_columns(moments[q], first);
            uint uppers[SPAN];
            [[unroll]] for (int i = 0; i < SPAN; ++i) uppers[i] = moments[q][i] >> 16;
            uint total[COLUMNS] = filter_row(moments[q]), high[COLUMNS] = filter_row(uppers);
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                uint low = total[c] - (high[c] << 16);  // the total may wrap, this part of it does not
                if (q == 0) {
                    means[0][c] = low;
                    means[1][c] = high[c];
                } else {
                    squares[q - 1][c] = round_halves(high[c], low, 16);
                }
            }
            [[unroll]] for (int i = 0; i < WIDEST - 1; ++i) {
                if (i < KEPT) moments[q][i] = moments[q][i + COLUMNS];
            }
        }
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
            int column = first - MARGIN + c;
            if (column >= begin && column < end && y < height) {
                add_window(sums, means[0][c], means[1][c], uvec3(squares[0][c], squares[1][c], squares[2][c]));
            }
        }
    }
    store_window_sums(sums);
}
