// The walk for GPUs: a workgroup walks down a strip of WINDOW_WORKGROUP columns, one a thread, and stages the rows it needs in
// shared memory, CHUNK rows between two barriers.
//
// As in window_strip.glsl each row is filtered across and added to the ten windows still open; the eleventh goes to `accept`.
// Two chunks take turns, so that one barrier a chunk is enough: a thread that runs ahead fills the chunk that nobody reads.

layout(local_size_x = WINDOW_WORKGROUP) in;

const int CHUNK = 4;
const int SPAN = WINDOW_WORKGROUP + 10;

shared vec2 tile[2][CHUNK][SPAN];  // (reference, distorted)
shared float subgroup_sums[SUMS][WINDOW_WORKGROUP];

void stage_row(int turn, int slot, int row, int first_column) {
    for (int i = int(gl_LocalInvocationIndex); i < SPAN; i += WINDOW_WORKGROUP) {
        int column = min(first_column + i, width - 1);
        tile[turn][slot][i] = vec2(sample_at(row, column), sample_at(row + plane, column));
    }
}

void main() {
    int lane = int(gl_LocalInvocationIndex);
    int first_column = int(gl_WorkGroupID.x) * WINDOW_WORKGROUP;
    int top = int(gl_WorkGroupID.y) * strip;
    int rows = min(strip, height - 10 - top);
    int first_row = int(gl_WorkGroupID.z) * 2 * plane + top * pitch;
    bool inside = first_column + lane < width - 10;

    float open[5][10], sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m) [[unroll]] for (int k = 0; k < 10; ++k) open[m][k] = 0.0;
    [[unroll]] for (int i = 0; i < SUMS; ++i) sums[i] = 0.0;

    int turn = 0;
    for (int chunk = 0; chunk < rows + 10; chunk += CHUNK, turn ^= 1) {
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot)
            stage_row(turn, slot, first_row + min(chunk + slot, rows + 9) * pitch, first_column);
        barrier();
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            float across[5] = float[](0.0, 0.0, 0.0, 0.0, 0.0);
            [[unroll]] for (int k = 0; k < 11; ++k) {
                vec2 pair = tile[turn][slot][lane + k];
                vec2 weighted = GAUSSIAN[k] * pair;
                across[0] += weighted.x;
                across[1] += weighted.y;
                across[2] += weighted.x * pair.x;
                across[3] += weighted.y * pair.y;
                across[4] += weighted.x * pair.y;
            }
            float done[5];
            [[unroll]] for (int m = 0; m < 5; ++m) {
                done[m] = open[m][0] + GAUSSIAN[10] * across[m];
                [[unroll]] for (int k = 0; k < 9; ++k) open[m][k] = open[m][k + 1] + GAUSSIAN[9 - k] * across[m];
                open[m][9] = GAUSSIAN[0] * across[m];
            }
            int row = chunk + slot - 10;
            if (row >= 0 && row < rows && inside) {
                float accepted[SUMS];
                accept(accepted, Moments(done[0], done[1], done[2], done[3], done[4]));
                [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += accepted[s];
            }
        }
    }

    [[unroll]] for (int s = 0; s < SUMS; ++s) {
        float total = subgroupAdd(sums[s]);
        if (subgroupElect()) subgroup_sums[s][gl_SubgroupID] = total;
    }
    barrier();
    if (lane < SUMS) {
        float total = 0.0;
        for (uint i = 0; i < gl_NumSubgroups; ++i) total += subgroup_sums[lane][i];
        store_partial(lane, total);
    }
}
