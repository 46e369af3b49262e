// The shape for CPUs: a thread has STRIP_COLUMNS columns, from top to bottom. The differences of five rows stay in registers.

const int SPAN = STRIP_COLUMNS + 2 * REACH;

// Returns a block of a frame; frames below 0 are those before the batch. Both buffers are read, because CPUs execute both sides of a
// branch.
uvec4 block_at(int frame, int place) {
    uvec4 lead = texelFetch(lead_blocks, clamp(frame + distance, 0, distance - 1) * plane + place), sampled = texelFetch(blocks, max(frame, 0) * 2 * plane + place);
    return frame < 0 ? lead : sampled;
}

// Returns the samples of a row from REACH columns before those of a thread. Those beyond an edge are other samples of the row.
int[SPAN] samples_of(int frame, int row, int first) {
    int samples[SPAN];
    int width_shift = FORMAT == UINT8 ? 4 : 3;  // samples of a block
    int place = first >> width_shift, last = (width - 1) >> width_shift;
    uvec4 before = block_at(frame, row + max(place - 1, 0)), block = block_at(frame, row + place);
    uvec4 after = block_at(frame, row + min(place + 1, last));
    if (FORMAT == UINT8) {
        bool is_second = (first & 8) != 0;  // of the two threads of a block
        uint words[4] = uint[](
            is_second ? block.y : before.w, is_second ? block.z : block.x, is_second ? block.w : block.y, is_second ? after.x : block.z
        );
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            int place_in_words = i + 4 - REACH;
            samples[i] = int(bitfieldExtract(words[place_in_words >> 2], 8 * (place_in_words & 3), 8));
        }
    } else {
        uint words[6] = uint[](before.w, block.x, block.y, block.z, block.w, after.x);
        [[unroll]] for (int i = 0; i < SPAN; ++i) samples[i] = int(bitfieldExtract(words[i >> 1], 16 * (i & 1), 16) >> sample_shift);
    }
    return samples;
}

int[SPAN] differences_of(int row, int first) {
    int frame = workgroup_id().z, place = mirrored(row, height) * pitch;
    int before[SPAN] = samples_of(frame - distance, place, first), after[SPAN] = samples_of(frame, place, first);
    [[unroll]] for (int i = 0; i < SPAN; ++i) before[i] -= after[i];
    return before;
}

// Mirrors columns beyond an edge. A branch would cost more: CPUs execute both of its sides.
void mirror_columns(inout int values[SPAN], int first) {
    [[unroll]] for (int i = 0; i < REACH; ++i) values[i] = first == 0 ? values[2 * REACH - i] : values[i];
    int edge = width - 1 - first + REACH;  // the place of the last column
    [[unroll]] for (int i = REACH; i < SPAN; ++i) {
        [[unroll]] for (int beyond = 1; beyond <= REACH; ++beyond) {
            if (i - 2 * beyond >= 0) values[i] = i == edge + beyond ? values[i - 2 * beyond] : values[i];
        }
    }
}

void main() {
    int first = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = first < width ? min(strip, height - top) : 0;

    int differences[SIDE][SPAN];
    [[unroll]] for (int i = 1; i < SIDE; ++i) differences[i] = differences_of(top - REACH + i - 1, first);
    uint sum = 0u;
    for (int row = 0; row < rows; ++row) {
        [[unroll]] for (int i = 1; i < SIDE; ++i) differences[i - 1] = differences[i];
        differences[SIDE - 1] = differences_of(top + row + REACH, first);

        int columns[SPAN];
        [[unroll]] for (int c = 0; c < SPAN; ++c) {
            int column[SIDE];
            [[unroll]] for (int i = 0; i < SIDE; ++i) column[i] = differences[i][c];
            columns[c] = blurred_column(column);
        }
        mirror_columns(columns, first);
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            int around[SIDE];
            [[unroll]] for (int i = 0; i < SIDE; ++i) around[i] = columns[c + i];
            sum += first + c < width ? uint(abs(blurred(around, 16))) : 0u;
        }
    }
    store_magnitudes(sum);
}
