// Moves over the planes in the shape for GPUs: a thread has a column of bands, and shares what its neighbours add to their
// thresholds.

const int MAX_SUBGROUPS = THREADS / 4;  // no subgroup is smaller than 4

layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };
layout(std430, set = 0, binding = 2) writeonly restrict buffer Rows { uvec2 row_sums[]; };

shared uint shared_neighbours[2][PARTS][THREADS];
shared uvec2 subgroup_sums[2][MOST_SUMS][MAX_SUBGROUPS];

// Returns four samples of a row.
ivec4 samples_of(int side, int row, const int columns[4]) {
    ivec4 samples;
    int start = row_start(side, row);
    [[unroll]] for (int i = 0; i < 4; ++i) {
        if (SCALE == 0u) {
            samples[i] = int(integer_at(start, columns[i])) - (1 << bits >> 1);
        } else {
            samples[i] = int(words[start + columns[i]]);
            if (SCALE == 1u) samples[i] = bitfieldExtract(samples[i], 16 * side, 16);
        }
    }
    return samples;
}

// Filters four columns of four samples; each row has four columns.
ivec4 filter_columns(ivec4 first, ivec4 second, ivec4 third, ivec4 fourth, ivec4 taps) {
    ivec4 sums;
    [[unroll]] for (int i = 0; i < 4; ++i) sums[i] = filter_column(ivec4(first[i], second[i], third[i], fourth[i]), taps);
    return sums;
}

void store_approximations(ivec4 low[2], int row, int column) {
    uint reference = uint(filter_row(low[0], ADM_LOW_PASS)), distorted = uint(filter_row(low[1], ADM_LOW_PASS));
    if (SCALE == 0u) {
        target[target_start(0, row) + column] = (reference & 0xffffu) | distorted << 16;
    } else {
        target[target_start(0, row) + column] = reference;
        target[target_start(1, row) + column] = distorted;
    }
}

void store_workgroup(int row) {
    int sum = int(gl_LocalInvocationIndex);
    if (sum < sum_count()) {
        uvec2 total = uvec2(0u);
        for (uint i = 0; i < gl_NumSubgroups; ++i) total = add(total, subgroup_sums[row & 1][sum][i]);
        row_sums[row_place(sum, row - top)] = total;
    }
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int column = workgroup_id().x * GROUP_COLUMNS + thread - 1;
    bool exists = thread > 0 && thread < THREADS - 1 && column < band_width();
    bool counts = exists && column_counts(column);
    int band_column = clamp(reflected(column, band_width()), 0, band_width() - 1);  // whose bands the thread has
    int columns[4];
    [[unroll]] for (int i = 0; i < 4; ++i) columns[i] = reflected(2 * band_column - 1 + i, width);
    Strip rows = strip_of_workgroup();

    for (int i = 0; i < rows.rows - (rows.end - rows.begin); ++i) {
        int row = outer_row(rows, i);
        ivec4 low[2];
        [[unroll]] for (int side = 0; side < 2; ++side) {
            ivec4 samples[4];
            [[unroll]] for (int k = 0; k < 4; ++k) samples[k] = samples_of(side, 2 * row - 1 + k, columns);
            low[side] = filter_columns(samples[0], samples[1], samples[2], samples[3], ADM_LOW_PASS);
        }
        if (exists) store_approximations(low, row, column);
    }
    if (rows.begin == rows.end) return;

    uint before[PARTS] = uint[](0u, 0u), here[PARTS] = uint[](0u, 0u);
    Part parts[PARTS];
    [[unroll]] for (int part = 0; part < PARTS; ++part) parts[part] = Part(uint[](0u, 0u, 0u), 0u, 0u);
    uvec2 cubes[BANDS] = uvec2[](uvec2(0u), uvec2(0u), uvec2(0u));
    ivec4 kept[2][2];  // two rows of samples of each plane, which the next row of bands needs too
    [[unroll]] for (int side = 0; side < 2; ++side) {
        [[unroll]] for (int k = 0; k < 2; ++k) kept[side][k] = samples_of(side, 2 * rows.begin - 3 + k, columns);
    }
    for (int row = rows.begin - 1; row <= rows.end; ++row) {
        ivec4 low[2];
        ivec3 bands[2];
        [[unroll]] for (int side = 0; side < 2; ++side) {
            ivec4 third = samples_of(side, 2 * row + 1, columns), fourth = samples_of(side, 2 * row + 2, columns);
            low[side] = filter_columns(kept[side][0], kept[side][1], third, fourth, ADM_LOW_PASS);
            ivec4 high = filter_columns(kept[side][0], kept[side][1], third, fourth, ADM_HIGH_PASS);
            bands[side] = ivec3(
                filter_row(high, ADM_LOW_PASS), filter_row(low[side], ADM_HIGH_PASS), filter_row(high, ADM_HIGH_PASS)
            );
            kept[side][0] = third;
            kept[side][1] = fourth;
        }
        if (exists && row >= rows.begin && row < rows.end) store_approximations(low, row, column);

        Place place = decouple(bands[0], bands[1]);
        shared_neighbours[row & 1][0][thread] = place.restored.neighbour;
        if (AIM != 0u) shared_neighbours[row & 1][1][thread] = place.added.neighbour;
        barrier();  // one is enough: the next row has the other half of the memory
        if (row > rows.begin + 1) store_workgroup(row - 2);

        [[unroll]] for (int part = 0; part < PARTS; ++part) {
            if (part > 0 && AIM == 0u) continue;
            Part found = part == 0 ? place.restored : place.added;
            uint next = found.neighbour;
            if (counts) next += shared_neighbours[row & 1][part][thread - 1] + shared_neighbours[row & 1][part][thread + 1];
            if (row > rows.begin) {
                uint above = row == 1 ? next : before[part], below = row == band_height() ? here[part] : next;
                [[unroll]] for (int band = 0; band < BANDS; ++band) {
                    uint threshold = above + here[part] + below + parts[part].own;
                    uvec2 masked = masked_cube(parts[part].magnitudes[band], threshold, band);
                    masked = add_subgroup(counts ? masked : uvec2(0u));
                    if (subgroupElect()) subgroup_sums[(row - 1) & 1][2 * BANDS * part + band][gl_SubgroupID] = masked;
                }
            }
            before[part] = here[part];
            here[part] = next;
            parts[part] = found;
        }
        [[unroll]] for (int band = 0; band < BANDS; ++band) {
            uvec2 whole = add_subgroup(counts ? cubes[band] : uvec2(0u));
            if (row > rows.begin && subgroupElect()) subgroup_sums[(row - 1) & 1][BANDS + band][gl_SubgroupID] = whole;
            cubes[band] = band_cube(bands[0][band]);
        }
    }
    barrier();
    store_workgroup(rows.end - 1);
}
