// Moves the window over the planes in float32, in the shape for GPUs: a workgroup processes a strip of WINDOW_WORKGROUP columns of samples
// from top to bottom, CHUNK rows at a time.
//
//   down    A thread has one column. It adds its samples, squares and product to the ten unfinished windows in registers (a
//           transposed filter, as in window_fast_strip.glsl), and writes finished column sums to shared memory.
//   across  A thread has CHUNK neighbouring windows, which share the column sums that it reads, sixteen bytes at a time.
//
// Because it filters vertically first, each square and product is computed once. Four windows per thread reduce the reads of
// shared memory to a third.

layout(local_size_x = WINDOW_WORKGROUP) in;

const int CHUNK = 4;  // rows between two barriers, and windows of a thread in the pass across
const int LANES_ACROSS = WINDOW_WORKGROUP / CHUNK;
const int WINDOWS = WINDOW_WORKGROUP - MARGIN;  // columns of windows
const int FOURS = (CHUNK + MARGIN + 3) / 4;      // vectors of column sums that a thread's windows span

shared vec4 column_sums[5][CHUNK][WINDOW_WORKGROUP / 4 + FOURS - 1];

void main() {
    int lane = int(gl_LocalInvocationIndex);
    int first_column = int(gl_WorkGroupID.x) * WINDOWS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - MARGIN - top);
    int first_row = workgroup_id().z * 2 * plane + top * pitch;
    int column = min(first_column + lane, width - 1);
    int lane_across = lane % LANES_ACROSS;
    int slot_across = lane / LANES_ACROSS;
    int windows = min(WINDOWS, width - MARGIN - first_column) - CHUNK * lane_across;  // how many windows of the thread exist

    float counts[CHUNK];  // 1 for each window that exists, otherwise 0
    [[unroll]] for (int w = 0; w < CHUNK; ++w) counts[w] = w < windows ? 1.0 : 0.0;
    if (lane < FOURS - 1)  // the last threads read past the columns; these values have weight 0, but must not be NaN
        [[unroll]] for (int m = 0; m < 5; ++m)
            [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) column_sums[m][slot][WINDOW_WORKGROUP / 4 + lane] = vec4(0.0);

    float open[5][MARGIN], sums[SUMS];
    [[unroll]] for (int m = 0; m < 5; ++m) [[unroll]] for (int k = 0; k < MARGIN; ++k) open[m][k] = 0.0;
    [[unroll]] for (int i = 0; i < SUMS; ++i) sums[i] = 0.0;

    for (int chunk = -MARGIN; chunk < rows; chunk += CHUNK) {
        float a[CHUNK], b[CHUNK];
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            int row = first_row + min(chunk + MARGIN + slot, rows + MARGIN - 1) * pitch;
            a[slot] = sample_at(row, column);
            b[slot] = sample_at(row + plane, column);
        }
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            float moments[5] = float[](a[slot], b[slot], a[slot] * a[slot], b[slot] * b[slot], a[slot] * b[slot]);
            [[unroll]] for (int m = 0; m < 5; ++m) {
                column_sums[m][slot][lane >> 2][lane & 3] = open[m][0] + GAUSSIAN[MARGIN] * moments[m];
                [[unroll]] for (int k = 0; k < MARGIN - 1; ++k) open[m][k] = open[m][k + 1] + GAUSSIAN[MARGIN - 1 - k] * moments[m];
                open[m][MARGIN - 1] = GAUSSIAN[0] * moments[m];
            }
        }
        barrier();
        int row = chunk + slot_across;
        if (row >= 0 && row < rows && windows > 0) {
            float done[5][CHUNK];
            [[unroll]] for (int m = 0; m < 5; ++m) {
                float column_sum[4 * FOURS];
                [[unroll]] for (int i = 0; i < FOURS; ++i) {
                    vec4 four = column_sums[m][slot_across][CHUNK / 4 * lane_across + i];
                    [[unroll]] for (int j = 0; j < 4; ++j) column_sum[4 * i + j] = four[j];
                }
                [[unroll]] for (int w = 0; w < CHUNK; ++w) {
                    float across = GAUSSIAN[0] * column_sum[w];
                    [[unroll]] for (int k = 1; k < SIDE; ++k) across += GAUSSIAN[k] * column_sum[w + k];
                    done[m][w] = across;
                }
            }
            [[unroll]] for (int w = 0; w < CHUNK; ++w) {
                float accepted[SUMS];
                accept(accepted, Moments(done[0][w], done[1][w], done[2][w], done[3][w], done[4][w]));
                KEEP_WINDOW(w < windows, top + row, first_column + CHUNK * lane_across + w, accepted[0])
                [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] += counts[w] * accepted[s];
            }
        }
        barrier();
    }
    store_sums(sums);
}
