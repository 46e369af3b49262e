// The shape for GPUs: a thread has a column of samples, whose blur it shares row by row with its neighbours.

shared int columns[2][MOTION_WORKGROUP];

int sample_of(uint word, int column) {
    if (FORMAT == UINT8) return int(bitfieldExtract(word, 8 * (column & 3), 8));
    return int(bitfieldExtract(word, 16 * (column & 1), 16) >> sample_shift);
}

// Returns the sample of the earlier reference, less that of the reference.
int difference_at(int row, int column) {
    int place = mirrored(row, height) * pitch + (FORMAT == UINT8 ? column >> 2 : column >> 1);
    int frame = workgroup_id().z;
    uint before = frame < distance ? lead_words[frame * plane + place] : words[(frame - distance) * 2 * plane + place];
    return sample_of(before, column) - sample_of(words[frame * 2 * plane + place], column);
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int column = workgroup_id().x * (MOTION_WORKGROUP - 2 * REACH) + thread - REACH;
    int read_column = clamp(mirrored(column, width), 0, width - 1);
    bool is_inner = thread >= REACH && thread < MOTION_WORKGROUP - REACH && column < width;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);

    int differences[SIDE];
    [[unroll]] for (int i = 1; i < SIDE; ++i) differences[i] = difference_at(top - REACH + i - 1, read_column);
    uint sum = 0u;
    for (int row = 0; row < rows; ++row) {
        [[unroll]] for (int i = 1; i < SIDE; ++i) differences[i - 1] = differences[i];
        differences[SIDE - 1] = difference_at(top + row + REACH, read_column);
        columns[row & 1][thread] = blurred_column(differences);
        barrier();  // one is enough: the next row has the other half of the memory

        if (is_inner) {
            int around[SIDE];
            [[unroll]] for (int i = 0; i < SIDE; ++i) around[i] = columns[row & 1][thread + i - REACH];
            sum += uint(abs(blurred(around, 16)));
        }
    }
    store_magnitudes(sum);
}
