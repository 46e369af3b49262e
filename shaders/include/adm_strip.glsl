// Moves over the planes in the shape for CPUs: a thread has STRIP_COLUMNS columns of bands, and a column on either side.

const int SPAN = COLUMNS + 2;
const int SAMPLES = 2 * SPAN + 2;
const int LEAD = 3;  // samples before the first column of the thread

layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uvec4 target[]; };
layout(std430, set = 0, binding = 2) writeonly restrict buffer Rows { uint row_words[]; };

// Returns the samples of a row that the bands of a thread need. Those beyond an edge are other samples of the row.
int[SAMPLES] samples_of(int side, int row, int first) {
    int samples[SAMPLES];
    int start = row_start(side, row);
    if (SCALE == 0u && FORMAT == UINT8) {
        const int TEXELS = COLUMNS / 8;
        uint words[4 * TEXELS + 2];  // from the word of the sample before the first
        [[unroll]] for (int b = -1; b <= TEXELS; ++b) {
            uvec4 block = texelFetch(blocks, start + clamp((first >> 3) + b, 0, pitch - 1));
            [[unroll]] for (int i = 0; i < 4; ++i) {
                int word = 4 * b + i + 1;
                if (word >= 0 && word < 4 * TEXELS + 2) words[word] = block[i];
            }
        }
        [[unroll]] for (int i = 0; i < SAMPLES; ++i) samples[i] = int(bitfieldExtract(words[(i + 1) >> 2], 8 * ((i + 1) & 3), 8));
    } else if (SCALE == 0u) {
        const int TEXELS = COLUMNS / 4;
        uint words[4 * TEXELS + 4];  // from the word of the second sample before the first
        [[unroll]] for (int b = -1; b <= TEXELS; ++b) {
            uvec4 block = texelFetch(blocks, start + clamp((first >> 2) + b, 0, pitch - 1));
            [[unroll]] for (int i = 0; i < 4; ++i) {
                int word = 4 * b + i + 2;
                if (word >= 0 && word < 4 * TEXELS + 4) words[word] = block[i];
            }
        }
        [[unroll]] for (int i = 0; i < SAMPLES; ++i) {
            samples[i] = int(bitfieldExtract(words[(i + 1) >> 1], 16 * ((i + 1) & 1), 16) >> sample_shift);
        }
    } else {
        const int TEXELS = COLUMNS / 2;
        [[unroll]] for (int b = -1; b <= TEXELS; ++b) {
            uvec4 block = texelFetch(blocks, start + clamp((first >> 1) + b, 0, pitch - 1));
            [[unroll]] for (int i = 0; i < 4; ++i) {
                int place = 4 * b + i + LEAD;
                if (place >= 0 && place < SAMPLES) samples[place] = int(block[i]);
            }
        }
        [[unroll]] for (int i = 0; i < SAMPLES; ++i) {
            if (SCALE == 1u) samples[i] = bitfieldExtract(samples[i], 16 * side, 16);
        }
    }
    [[unroll]] for (int i = 0; i < SAMPLES; ++i) {
        if (SCALE == 0u) samples[i] -= 1 << bits >> 1;
    }
    samples[LEAD - 1] = first == 0 ? samples[LEAD + 1] : samples[LEAD - 1];
    return samples;
}

// Replaces a column beyond the right edge. A branch would cost more: CPUs execute both of its sides.
void mirror_column(inout int sums[SAMPLES], int column, int first) {
    int edge = width - 1 - (2 * first - LEAD);  // the place of the last column
    if (column > 0) sums[column] = column == edge + 1 ? sums[column - 1] : sums[column];
    if (column > 2) sums[column] = column == edge + 2 ? sums[column - 3] : sums[column];
}

ivec4 four_of(int values[SAMPLES], int first) {
    return ivec4(values[first], values[first + 1], values[first + 2], values[first + 3]);
}

void store_approximations(int values[2][COLUMNS], int row, int first) {
    [[unroll]] for (int side = 0; side < 2; ++side) {
        if (SCALE > 0u || side == 0) {
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                if (SCALE == 0u) values[0][c] = (values[0][c] & 0xffff) | values[1][c] << 16;
            }
            int start = (target_start(side, row) + first) >> 2;
            [[unroll]] for (int i = 0; i < COLUMNS / 4; ++i) {
                uvec4 four;
                [[unroll]] for (int c = 0; c < 4; ++c) four[c] = uint(values[side][4 * i + c]);
                target[start + i] = computed(four);
            }
        }
    }
}

// Stores the sums of a row, which is counted from `top`. Four threads have a word each: a store takes as long for one thread as
// for all.
void store_rows(int row, const uvec2 sums[MOST_SUMS]) {
    int thread = int(gl_SubgroupInvocationID);
    [[unroll]] for (int pair = 0; pair <= MOST_SUMS / 2; ++pair) {
        int i = 2 * pair, count = min(sum_count() - i, 2);
        uvec2 sum = thread < 2 ? sums[i] : sums[min(i + 1, MOST_SUMS - 1)];
        if (thread < 2 * count) row_words[2 * row_place(i + (thread >> 1), row) + (thread & 1)] = (thread & 1) == 0 ? sum.x : sum.y;
    }
}

void main() {
    int first = int(gl_GlobalInvocationID.x) * COLUMNS;
    bool exists = first < band_width();
    Strip rows = strip_of_workgroup();

    for (int i = 0; i < rows.rows - (rows.end - rows.begin); ++i) {
        int row = outer_row(rows, i);
        int values[2][COLUMNS];
        [[unroll]] for (int side = 0; side < 2; ++side) {
            int samples[4][SAMPLES], low[SAMPLES];
            [[unroll]] for (int k = 0; k < 4; ++k) samples[k] = samples_of(side, 2 * row - 1 + k, first);
            [[unroll]] for (int c = 0; c < SAMPLES; ++c) {
                low[c] = filter_column(ivec4(samples[0][c], samples[1][c], samples[2][c], samples[3][c]), ADM_LOW_PASS);
                mirror_column(low, c, first);
            }
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) values[side][c] = filter_row(four_of(low, 2 * (c + 1)), ADM_LOW_PASS);
        }
        if (exists) store_approximations(values, row, first);
    }
    if (rows.begin == rows.end) return;

    uint before[PARTS][COLUMNS], here[PARTS][COLUMNS], own[PARTS][COLUMNS], magnitudes[PARTS][BANDS][COLUMNS];
    [[unroll]] for (int part = 0; part < PARTS; ++part) {
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
            before[part][c] = here[part][c] = own[part][c] = 0u;
            [[unroll]] for (int band = 0; band < BANDS; ++band) magnitudes[part][band][c] = 0u;
        }
    }
    uvec2 wholes[BANDS];
    [[unroll]] for (int band = 0; band < BANDS; ++band) wholes[band] = uvec2(0u);
    int kept[2][2][SAMPLES];  // two rows of samples of each plane, which the next row of bands needs too
    [[unroll]] for (int side = 0; side < 2; ++side) {
        [[unroll]] for (int k = 0; k < 2; ++k) kept[side][k] = samples_of(side, 2 * rows.begin - 3 + k, first);
    }

    for (int row = rows.begin - 1; row <= rows.end; ++row) {
        int third[2][SAMPLES], fourth[2][SAMPLES], low[2][SAMPLES], high[2][SAMPLES];
        [[unroll]] for (int side = 0; side < 2; ++side) {
            third[side] = samples_of(side, 2 * row + 1, first);
            fourth[side] = samples_of(side, 2 * row + 2, first);
        }
        int reference[BANDS][SPAN], values[2][COLUMNS];
        uint neighbours[PARTS][SPAN], next_own[PARTS][COLUMNS], next_magnitudes[PARTS][BANDS][COLUMNS];
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            ivec3 bands[2];
            [[unroll]] for (int side = 0; side < 2; ++side) {
                // Sums are made when they are needed: they would not fit the registers of a CPU.
                [[unroll]] for (int c = 0; c < SAMPLES; ++c) {
                    if (c < 2 * i + 4 && (i == 0 || c >= 2 * i + 2)) {
                        ivec4 column = ivec4(kept[side][0][c], kept[side][1][c], third[side][c], fourth[side][c]);
                        low[side][c] = filter_column(column, ADM_LOW_PASS);
                        high[side][c] = filter_column(column, ADM_HIGH_PASS);
                        mirror_column(low[side], c, first);
                        mirror_column(high[side], c, first);
                        kept[side][0][c] = third[side][c];
                        kept[side][1][c] = fourth[side][c];
                    }
                }
                ivec4 lows = four_of(low[side], 2 * i), highs = four_of(high[side], 2 * i);
                bands[side] = ivec3(
                    filter_row(highs, ADM_LOW_PASS), filter_row(lows, ADM_HIGH_PASS), filter_row(highs, ADM_HIGH_PASS)
                );
                if (i > 0 && i <= COLUMNS) values[side][i - 1] = filter_row(lows, ADM_LOW_PASS);
            }
            Place place = decouple(bands[0], bands[1]);
            [[unroll]] for (int band = 0; band < BANDS; ++band) reference[band][i] = bands[0][band];
            [[unroll]] for (int part = 0; part < PARTS; ++part) {
                Part found = part == 0 ? place.restored : place.added;
                neighbours[part][i] = found.neighbour;
                if (i > 0 && i <= COLUMNS) {
                    next_own[part][i - 1] = found.own;
                    [[unroll]] for (int band = 0; band < BANDS; ++band) next_magnitudes[part][band][i - 1] = found.magnitudes[band];
                }
            }
        }

        uvec2 sums[MOST_SUMS];
        [[unroll]] for (int part = 0; part < PARTS; ++part) {
            if (part > 0 && AIM == 0u) continue;
            neighbours[part][0] = first == 0 ? neighbours[part][2] : neighbours[part][0];
            [[unroll]] for (int i = 1; i < SPAN; ++i) {
                neighbours[part][i] = first + i - 1 == band_width() ? neighbours[part][i - 1] : neighbours[part][i];
            }
            uint next[COLUMNS];
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                next[c] = neighbours[part][c] + neighbours[part][c + 1] + neighbours[part][c + 2];
            }
            [[unroll]] for (int band = 0; band < BANDS; ++band) {
                uvec2 masked = uvec2(0u);
                [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                    uint above = row == 1 ? next[c] : before[part][c], below = row == band_height() ? here[part][c] : next[c];
                    uint threshold = above + here[part][c] + below + own[part][c];
                    uvec2 cube = masked_cube(magnitudes[part][band][c], threshold, band);
                    masked = add(masked, column_counts(first + c) ? cube : uvec2(0u));
                }
                sums[2 * BANDS * part + band] = add_subgroup(masked);
            }
            before[part] = here[part];
            here[part] = next;
        }
        own = next_own;
        magnitudes = next_magnitudes;
        [[unroll]] for (int band = 0; band < BANDS; ++band) {
            uvec2 whole = uvec2(0u);
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                whole = add(whole, column_counts(first + c) ? band_cube(reference[band][c + 1]) : uvec2(0u));
            }
            sums[BANDS + band] = wholes[band];
            wholes[band] = add_subgroup(whole);
        }
        if (exists && row >= rows.begin && row < rows.end) store_approximations(values, row, first);
        if (row > rows.begin) store_rows(row - 1 - top, sums);
    }
}
