// Decimates with libvmaf's rounding: libvmaf's 9x9 table, and exact sums. It is for CPUs and for GPUs.
//
// A thread makes EXACT_OUTPUTS neighbouring outputs of a row. Constant 0: workgroup size.

#include "exact.glsl"

layout(local_size_x_id = 0) in;

const int SPAN = 2 * EXACT_OUTPUTS + 7;

void main() {
    int column = int(gl_GlobalInvocationID.x) * EXACT_OUTPUTS;
    if (column >= target_pitch) return;
    int out_row = int(gl_WorkGroupID.y);
    int plane_start = int(gl_WorkGroupID.z) * plane;
    int last = unit_of(width - 1);
    int end = width - (2 * column - 4);  // index of the first loaded sample past the end of the row

    ExactSum sums[EXACT_OUTPUTS];
    [[unroll]] for (int c = 0; c < EXACT_OUTPUTS; ++c) sums[c] = ExactSum(0.0, 0.0);
    [[unroll]] for (int j = 0; j < 9; ++j) {
        int row = mirror(2 * out_row + j - 4, height);
        float loaded[SPAN], samples[SPAN];
        LOAD_SAMPLES(loaded, SPAN, plane_start + row * pitch, last, 2 * column, -4)
        // No output reads more than four samples past a border. The n-th sample past it equals the n-th before it.
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            samples[i] = loaded[i];
            if (i < 4) samples[i] = column == 0 ? loaded[7 - i] : samples[i];
            [[unroll]] for (int past = 0; past < 4; ++past) {
                int mirrored = i - 1 - 2 * past;
                if (mirrored >= 0) samples[i] = i == end + past ? loaded[mirrored] : samples[i];
            }
        }
        [[unroll]] for (int c = 0; c < EXACT_OUTPUTS; ++c)
            [[unroll]] for (int k = 0; k < 9; ++k) add_product(sums[c], LOW_PASS_TABLE[j][k], samples[2 * c + k]);
    }
    int out_index = int(gl_WorkGroupID.z) * target_plane + out_row * target_pitch + column;
    [[unroll]] for (int c = 0; c < EXACT_OUTPUTS; ++c)
        if (column + c < target_pitch) target[out_index + c] = column + c < (width + 1) >> 1 ? rounded(sums[c]) : 0.0;
}
