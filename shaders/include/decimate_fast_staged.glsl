// Decimates in the shape for GPUs: a workgroup processes a strip of 4 * DECIMATE_WORKGROUP input columns from top to bottom,
// CHUNK output rows at a time.
//
//   down    A thread has four neighbouring input columns. It adds each pair of rows to the unfinished outputs in registers (a
//           transposed filter), and writes a finished output to shared memory.
//   across  A thread makes eight neighbouring outputs from the 23 column sums that they share. Each read and write has
//           sixteen bytes.
//
// Columns beyond the border are mirrored, sample by sample. Only the workgroups at the border do so.

layout(local_size_x = DECIMATE_WORKGROUP) in;

#include "decimate_fast.glsl"

const int CHUNK = 4;
const int OUTPUTS_ACROSS = 8;
const int LANES_ACROSS = DECIMATE_WORKGROUP / CHUNK;

shared vec4 column_sums[CHUNK][DECIMATE_WORKGROUP];

void main() {
    int lane = int(gl_LocalInvocationIndex);
    int first_output = int(gl_WorkGroupID.x) * DECIMATE_OUTPUTS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, ((height + 1) >> 1) - top);
    int plane_start = workgroup_id().z * plane;
    int column = 2 * first_output + 4 * lane - 4;
    bool at_border = gl_WorkGroupID.x == 0 || 2 * first_output - 4 + 4 * DECIMATE_WORKGROUP > width;
    ivec4 mirrored;
    [[unroll]] for (int j = 0; j < 4; ++j) mirrored[j] = clamp(mirror(column + j, width), 0, width - 1);

    int slot_across = lane / LANES_ACROSS;
    int lane_across = lane % LANES_ACROSS;
    int output_across = first_output + OUTPUTS_ACROSS * lane_across;
    bool needed = OUTPUTS_ACROSS * lane_across < DECIMATE_OUTPUTS;

    vec4 open[4] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    for (int chunk = -4; chunk < rows; chunk += CHUNK) {
        vec4 samples[2 * CHUNK];
        int rows_in[2 * CHUNK];
        [[unroll]] for (int i = 0; i < 2 * CHUNK; ++i)
            rows_in[i] = plane_start + max(mirror(2 * (top + chunk) + 4 + i, height), 0) * pitch;
        if (at_border) {
            [[unroll]] for (int i = 0; i < 2 * CHUNK; ++i)
                samples[i] = vec4(sample_at(rows_in[i], mirrored.x), sample_at(rows_in[i], mirrored.y),
                                  sample_at(rows_in[i], mirrored.z), sample_at(rows_in[i], mirrored.w));
        } else {
            [[unroll]] for (int i = 0; i < 2 * CHUNK; ++i) samples[i] = four_samples_at(rows_in[i], column);
        }
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot)
            column_sums[slot][lane] = add_rows(samples[2 * slot], samples[2 * slot + 1], open);
        barrier();
        if (chunk >= 0 && chunk + slot_across < rows && needed) {
            float column_sum[24];
            [[unroll]] for (int i = 0; i < 6; ++i) {
                vec4 four = column_sums[slot_across][4 * lane_across + i];
                [[unroll]] for (int j = 0; j < 4; ++j) column_sum[4 * i + j] = four[j];
            }
            float outputs[OUTPUTS_ACROSS];
            [[unroll]] for (int c = 0; c < OUTPUTS_ACROSS; ++c) {
                float total = LOW_PASS[0] * column_sum[2 * c];
                [[unroll]] for (int k = 1; k < 9; ++k) total += LOW_PASS[k] * column_sum[2 * c + k];
                outputs[c] = total;
            }
            int row_start = workgroup_id().z * target_plane + (top + chunk + slot_across) * target_pitch;
            [[unroll]] for (int part = 0; part < 2; ++part)
                if (output_across + 4 * part < target_pitch)
                    target[(row_start + output_across) / 4 + part] =
                        vec4(outputs[4 * part], outputs[4 * part + 1], outputs[4 * part + 2], outputs[4 * part + 3]);
        }
        barrier();
    }
}
