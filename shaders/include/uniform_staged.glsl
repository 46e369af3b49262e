// Moves the rectangular window over the planes in the shape for GPUs, as window_fast_staged.glsl does: a workgroup processes a strip
// of WINDOW_WORKGROUP columns of samples from top to bottom, CHUNK rows at a time.
//
//   down    A thread has one column. It merges a row with the rows before it, one to two to four to eight, and writes finished
//           blocks to shared memory.
//   across  A thread has CHUNK neighbouring windows, and merges them in the same way from the columns that they share.
//
// The estimate has fewer windows across, so whole subgroups have no work there. None of its columns is read twice.

layout(local_size_x = WINDOW_WORKGROUP) in;

const int CHUNK = UNIFORM / 2;  // rows between two barriers, and windows of a thread in the pass across
const int SPAN = CHUNK + UNIFORM - 1;
const int FOURS = (SPAN + 3) / 4;  // vectors that the columns of a thread's windows span
const int QUANTITIES = 5;          // of a block
#ifdef ESTIMATE
const int COLUMNS = WINDOW_WORKGROUP;  // from workgroup to workgroup
const int LANES_OF_A_FRAGMENT = FRAGMENT_WINDOWS / CHUNK;
const int LANES_ACROSS = WINDOW_WORKGROUP / FRAGMENT * LANES_OF_A_FRAGMENT;
#else
const int COLUMNS = WINDOW_WORKGROUP - UNIFORM + 1;
const int LANES_ACROSS = WINDOW_WORKGROUP / CHUNK;
#endif

shared vec4 columns[QUANTITIES][CHUNK][WINDOW_WORKGROUP / 4 + FOURS - 1];

// The first column of a thread's windows, within its workgroup; a multiple of CHUNK.
int column_across(int lane_across) {
#ifdef ESTIMATE
    return lane_across / LANES_OF_A_FRAGMENT * FRAGMENT + lane_across % LANES_OF_A_FRAGMENT * CHUNK;
#else
    return lane_across * CHUNK;
#endif
}

void main() {
    int lane = int(gl_LocalInvocationIndex);
    int first_column = int(gl_WorkGroupID.x) * COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - UNIFORM + 1 - top);
    int first_row = workgroup_id().z * 2 * plane + top * pitch;
    int column = min(first_column + lane, width - 1);
    int slot_across = lane / LANES_ACROSS;
    int across = column_across(lane % LANES_ACROSS);
    int windows = min(COLUMNS, width - UNIFORM + 1 - first_column) - across;  // how many windows of the thread exist

    float counts[CHUNK];  // 1 for each window that exists, otherwise 0
    [[unroll]] for (int w = 0; w < CHUNK; ++w) counts[w] = w < windows ? 1.0 : 0.0;
    if (lane < FOURS - 1)  // the last threads read past the columns; these values have weight 0, but must not be NaN
        [[unroll]] for (int q = 0; q < QUANTITIES; ++q)
            [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) columns[q][slot][WINDOW_WORKGROUP / 4 + lane] = vec4(0.0);

    Block none = Block(vec2(0.0), vec3(0.0)), one = none;
    Block twos[2], fours[CHUNK];  // rows of the thread's column, the latest of them
    float sums[SUMS];
    [[unroll]] for (int i = 0; i < 2; ++i) twos[i] = none;
    [[unroll]] for (int i = 0; i < CHUNK; ++i) fours[i] = none;
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = 0.0;

    for (int chunk = 1 - UNIFORM; chunk < rows; chunk += CHUNK) {
        vec2 samples[CHUNK];
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            int row = first_row + min(chunk + UNIFORM - 1 + slot, rows + UNIFORM - 2) * pitch;
            samples[slot] = vec2(sample_at(row, column), sample_at(row + plane, column));
        }
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            Block sample_block = Block(samples[slot], vec3(0.0));
            Block two = merge(one, sample_block);
            Block four = merge(twos[slot & 1], two);
            Block eight = merge(fours[slot], four);
            one = sample_block;
            twos[slot & 1] = two;
            fours[slot] = four;
            float values[QUANTITIES] =
                float[](eight.sums.x, eight.sums.y, eight.scatters.x, eight.scatters.y, eight.scatters.z);
            [[unroll]] for (int q = 0; q < QUANTITIES; ++q) columns[q][slot][lane >> 2][lane & 3] = values[q];
        }
        barrier();
        int row = chunk + slot_across;
        if (slot_across < CHUNK && row >= 0 && row < rows && windows > 0) {
            float values[QUANTITIES][4 * FOURS];
            [[unroll]] for (int q = 0; q < QUANTITIES; ++q)
                [[unroll]] for (int i = 0; i < FOURS; ++i) {
                    vec4 four = columns[q][slot_across][across / 4 + i];
                    [[unroll]] for (int j = 0; j < 4; ++j) values[q][4 * i + j] = four[j];
                }
            Block blocks[SPAN];
            [[unroll]] for (int i = 0; i < SPAN; ++i)
                blocks[i] = Block(vec2(values[0][i], values[1][i]), vec3(values[2][i], values[3][i], values[4][i]));
            [[unroll]] for (int i = 0; i < SPAN - 1; ++i) blocks[i] = merge(blocks[i], blocks[i + 1]);
            [[unroll]] for (int i = 0; i < SPAN - 3; ++i) blocks[i] = merge(blocks[i], blocks[i + 2]);
            [[unroll]] for (int w = 0; w < CHUNK; ++w) {
                float lacking[SUMS] = deficits(merge(blocks[w], blocks[w + 4]));
                KEEP_WINDOW(w < windows, top + row, first_column + across + w, lacking[0])
                [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += counts[w] * lacking[s];
            }
        }
        barrier();
    }
    store_sums(sums);
}
