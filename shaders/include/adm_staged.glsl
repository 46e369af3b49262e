// Moves over the bands in the shape for GPUs: a thread has a column, and shares what its neighbours add to their thresholds.

const int MAX_SUBGROUPS = THREADS / 4;  // no subgroup is smaller than 4

shared uint shared_neighbours[2][THREADS];
shared uvec2 subgroup_sums[2][SUMS][MAX_SUBGROUPS];

ivec2 band_at(int band, int place) {
    int z = workgroup_id().z;
    if (SCALE == 0u) {
        int word = int(words[(4 * z + band) * plane + place]);
        return ivec2(bitfieldExtract(word, 0, 16), word >> 16);
    }
    return ivec2(words[(8 * z + band) * plane + place], words[(8 * z + 4 + band) * plane + place]);
}

void store_workgroup(int row) {
    int sum = int(gl_LocalInvocationIndex);
    if (sum < SUMS) {
        uvec2 total = uvec2(0u);
        for (uint i = 0; i < gl_NumSubgroups; ++i) total = add(total, subgroup_sums[row & 1][sum][i]);
        store_row(sum, row, total);
    }
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int column = left + workgroup_id().x * (THREADS - 2) + thread - 1;
    int read_column = clamp(reflected(column, width), 0, width - 1);
    bool counts = thread > 0 && thread < THREADS - 1 && column < width - left;
    int first_row = workgroup_id().y * strip;  // from `top`
    int rows = min(strip, height - 2 * top - first_row);

    uint before = 0u, here = 0u, own = 0u;
    uint restored[BANDS] = uint[](0u, 0u, 0u);
    uvec2 cubes[BANDS] = uvec2[](uvec2(0u), uvec2(0u), uvec2(0u));
    for (int row = -1; row <= rows; ++row) {
        int start = reflected(top + first_row + row, height) * pitch + read_column;
        ivec2 values[BANDS];
        [[unroll]] for (int band = 0; band < BANDS; ++band) values[band] = band_at(band, start);
        Place place = decouple(ivec3(values[0].x, values[1].x, values[2].x), ivec3(values[0].y, values[1].y, values[2].y));

        shared_neighbours[row & 1][thread] = place.neighbour;
        barrier();  // one is enough: the next row has the other half of the memory
        if (row > 1) store_workgroup(first_row + row - 2);
        uint next = place.neighbour;
        if (counts) next += shared_neighbours[row & 1][thread - 1] + shared_neighbours[row & 1][thread + 1];

        if (row > 0) {
            [[unroll]] for (int band = 0; band < BANDS; ++band) {
                uvec2 cube = masked_cube(restored[band], before + here + next + own, band);
                uvec2 sum = add_subgroup(counts ? cube : uvec2(0u)), band_sum = add_subgroup(counts ? cubes[band] : uvec2(0u));
                if (subgroupElect()) {
                    subgroup_sums[(first_row + row - 1) & 1][band][gl_SubgroupID] = sum;
                    subgroup_sums[(first_row + row - 1) & 1][BANDS + band][gl_SubgroupID] = band_sum;
                }
            }
        }
        before = here;
        here = next;
        own = place.own;
        restored = place.restored;
        [[unroll]] for (int band = 0; band < BANDS; ++band) cubes[band] = band_cube(values[band].x);
    }
    barrier();
    store_workgroup(first_row + rows - 1);
}
