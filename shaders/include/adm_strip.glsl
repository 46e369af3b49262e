// Moves over the bands in the shape for CPUs: a thread has STRIP_COLUMNS columns, and a column on either side.

const int COLUMNS = STRIP_COLUMNS;
const int SPAN = COLUMNS + 2;

// Returns the words of a plane of bands, from the column before `first`. Those beyond an edge are other words of the row.
int[SPAN] words_of(int start, int first) {
    int values[SPAN];
    int texel = min(first >> 2, pitch - 2);
    values[0] = int(texelFetch(bands, start + max(texel - 1, 0)).w);
    uvec4 one = texelFetch(bands, start + texel), two = texelFetch(bands, start + texel + 1);
    [[unroll]] for (int i = 0; i < 4; ++i) {
        values[i + 1] = int(one[i]);
        values[i + 5] = int(two[i]);
    }
    values[SPAN - 1] = int(texelFetch(bands, start + min(texel + 2, pitch - 1)).x);
    return values;
}

void main() {
    int first = (left & ~(COLUMNS - 1)) + int(gl_GlobalInvocationID.x) * COLUMNS;
    int first_row = top + workgroup_id().y * strip;
    int rows = min(strip, height - top - first_row);

    uint before[COLUMNS], here[COLUMNS], own[COLUMNS], restored[BANDS][COLUMNS];
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        before[c] = here[c] = own[c] = 0u;
        [[unroll]] for (int band = 0; band < BANDS; ++band) restored[band][c] = 0u;
    }

    for (int row = -1; row <= rows; ++row) {
        int reference[BANDS][SPAN], distorted[BANDS][SPAN];
        int start = reflected(first_row + row, height) * pitch;
        [[unroll]] for (int band = 0; band < BANDS; ++band) {
            if (SCALE == 0u) {
                int values[SPAN] = words_of((workgroup_id().z * 4 + band) * plane + start, first);
                [[unroll]] for (int i = 0; i < SPAN; ++i) {
                    reference[band][i] = bitfieldExtract(values[i], 0, 16);
                    distorted[band][i] = values[i] >> 16;
                }
            } else {
                reference[band] = words_of((workgroup_id().z * 8 + band) * plane + start, first);
                distorted[band] = words_of((workgroup_id().z * 8 + 4 + band) * plane + start, first);
            }
        }

        uint neighbours[SPAN], next_own[COLUMNS], next_restored[BANDS][COLUMNS];
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            Place place = decouple(
                ivec3(reference[0][i], reference[1][i], reference[2][i]),
                ivec3(distorted[0][i], distorted[1][i], distorted[2][i])
            );
            neighbours[i] = place.neighbour;
            if (i > 0 && i <= COLUMNS) {
                next_own[i - 1] = place.own;
                [[unroll]] for (int band = 0; band < BANDS; ++band) next_restored[band][i - 1] = place.restored[band];
            }
        }
        neighbours[0] = first == 0 ? neighbours[2] : neighbours[0];
        [[unroll]] for (int i = 1; i < SPAN; ++i) neighbours[i] = first + i - 1 == width ? neighbours[i - 1] : neighbours[i];

        uint next[COLUMNS];
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) next[c] = neighbours[c] + neighbours[c + 1] + neighbours[c + 2];
        if (row > 0) {
            [[unroll]] for (int band = 0; band < BANDS; ++band) {
                uvec2 sum = uvec2(0u);
                [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                    uvec2 cube = masked_cube(restored[band][c], before[c] + here[c] + next[c] + own[c], band);
                    bool counts = first + c >= left && first + c < width - left;
                    sum = add(sum, counts ? cube : uvec2(0u));
                }
                sum = add_subgroup(sum);
                if (subgroupElect()) store_row(band, first_row - top + row - 1, sum);
            }
        }
        if (row >= 0 && row < rows) {
            [[unroll]] for (int band = 0; band < BANDS; ++band) {
                uvec2 sum = uvec2(0u);
                [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                    bool counts = first + c >= left && first + c < width - left;
                    sum = add(sum, counts ? band_cube(reference[band][c + 1]) : uvec2(0u));
                }
                sum = add_subgroup(sum);
                if (subgroupElect()) store_row(BANDS + band, first_row - top + row, sum);
            }
        }
        before = here;
        here = next;
        own = next_own;
        restored = next_restored;
    }
}
