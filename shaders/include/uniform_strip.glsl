// Moves the rectangular window over the planes in the shape for CPUs, as window_fast_strip.glsl does: one thread processes a strip
// of STRIP_COLUMNS columns of windows from top to bottom, without barriers and without shared memory.
//
// A row is merged horizontally, one to two to four to eight samples, then vertically with the rows before it in the same way.
// Each turn processes four rows, so that a block that waits for its other half is never moved. Constant 0: workgroup size,
// which is one subgroup.

layout(local_size_x_id = 0) in;

const int SPAN = STRIP_COLUMNS + UNIFORM - 1;
const int TURN = UNIFORM / 2;  // rows

// The first column of a thread's windows.
int first_column(int thread) {
#ifdef ESTIMATE
    const int THREADS_OF_A_FRAGMENT = FRAGMENT_WINDOWS / STRIP_COLUMNS;
    return thread / THREADS_OF_A_FRAGMENT * FRAGMENT + thread % THREADS_OF_A_FRAGMENT * STRIP_COLUMNS;
#else
    return thread * STRIP_COLUMNS;
#endif
}

// Makes the UNIFORM x 1 block that begins at each of the thread's columns.
void read_row(int row, int last, int column, out Block done[STRIP_COLUMNS]) {
    float a[SPAN], b[SPAN];
    LOAD_SAMPLES(a, SPAN, row, last, column, 0)
    LOAD_SAMPLES(b, SPAN, row + plane, last, column, 0)
    Block ones[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) ones[i] = Block(vec2(a[i], b[i]), vec3(0.0));
    [[unroll]] for (int i = 0; i < SPAN - 1; ++i) ones[i] = merge(ones[i], ones[i + 1]);
    [[unroll]] for (int i = 0; i < SPAN - 3; ++i) ones[i] = merge(ones[i], ones[i + 2]);
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) done[c] = merge(ones[c], ones[c + 4]);
}

void main() {
    int column = first_column(int(gl_GlobalInvocationID.x));
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - UNIFORM + 1 - top);
    int first_row = workgroup_id().z * 2 * plane + top * pitch;
    int last = unit_of(width - 1);

    Block one[STRIP_COLUMNS], twos[2][STRIP_COLUMNS], fours[TURN][STRIP_COLUMNS];  // rows, the latest of them
    float sums[SUMS];
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
        Block none = Block(vec2(0.0), vec3(0.0));
        one[c] = none;
        [[unroll]] for (int i = 0; i < 2; ++i) twos[i][c] = none;
        [[unroll]] for (int i = 0; i < TURN; ++i) fours[i][c] = none;
    }
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = 0.0;

    for (int turn = 1 - UNIFORM; turn < rows; turn += TURN) {
        [[unroll]] for (int slot = 0; slot < TURN; ++slot) {
            int row = turn + slot;
            Block done[STRIP_COLUMNS];
            read_row(first_row + min(row + UNIFORM - 1, rows + UNIFORM - 2) * pitch, last, column, done);
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
                Block two = merge(one[c], done[c]);
                Block four = merge(twos[slot & 1][c], two);
                Block window = merge(fours[slot][c], four);
                one[c] = done[c];
                twos[slot & 1][c] = two;
                fours[slot][c] = four;
                float lacking[SUMS] = deficits(window);
                bool counts = row >= 0 && row < rows && column + c < width - UNIFORM + 1;
                KEEP_WINDOW(counts, top + row, column + c, lacking[0])
                [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += counts ? lacking[s] : 0.0;
            }
        }
    }
    store_sums(sums);
}
