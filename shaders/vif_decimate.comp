#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the planes of the next scale of vif, (w / 2) x (h / 2) samples of 16 bits.
//
// Each sample is a Gaussian mean around every second sample of every second row. Columns come first, and each pass is rounded to
// 16 bits. A thread makes a unit of a row: 8 samples in the strip shape, 4 in the staged shape.
// Constants: 0 workgroup size, 1 sample format, 5 the scale that is made. y: row. z: plane.

layout(local_size_x_id = 0) in;

#include "integer_constants.glsl"
#include "vif.glsl"

layout(push_constant) uniform Push {
    int width;  // of the source
    int height;
    int pitch;
    int plane;
    int target_pitch;  // words
    int target_plane;
    int mean_shift;    // of the sums of a column
    int sample_shift;  // the bits by which samples lie higher in their type
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "integers.glsl"
#include "store.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };

#ifdef STAGED
const int OUTPUTS = 4;
#else
const int OUTPUTS = 8;
#endif
const int LEAD = 4;  // the largest margin
const int SPAN = 2 * OUTPUTS - 1 + 2 * LEAD;

// Returns the samples of a row from LEAD columns before those of a unit. Those beyond an edge are other samples of the row.
uint[SPAN] samples_of(int row, int unit) {
    uint near[16];  // from the word of the first sample
    int last = (width - 1) >> (FORMAT == UINT8 ? 2 : 1);
#ifdef STAGED
    int first = unit * OUTPUTS / (FORMAT == UINT8 ? 2 : 1) - (FORMAT == UINT8 ? 1 : 2);
    [[unroll]] for (int i = 0; i < (SPAN + 1) / 2; ++i) {
        if (FORMAT != UINT8 || i < (SPAN + 3) / 4) near[i] = words[row + clamp(first + i, 0, last)];
    }
#else
    last >>= 2;
    if (FORMAT == UINT8) {
        uvec4 block = texelFetch(blocks, row + unit);
        near[0] = texelFetch(blocks, row + max(unit - 1, 0)).w;
        [[unroll]] for (int i = 0; i < 4; ++i) near[i + 1] = block[i];
        near[5] = texelFetch(blocks, row + min(unit + 1, last)).x;
    } else {
        [[unroll]] for (int b = -1; b < 3; ++b) {
            uvec4 block = texelFetch(blocks, row + clamp(2 * unit + b, 0, last));
            [[unroll]] for (int i = 0; i < 4; ++i) {
                int word = 4 * b + i + 2;
                if (word >= 0 && word < 16) near[word] = block[i];
            }
        }
    }
#endif
    uint samples[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) {
        samples[i] = FORMAT == UINT8 ? bitfieldExtract(near[i >> 2], 8 * (i & 3), 8)
                                     : bitfieldExtract(near[i >> 1], 16 * (i & 1), 16) >> sample_shift;
    }
    return samples;
}

// Mirrors the sums of columns beyond an edge. A branch would cost more: CPUs execute both of its sides.
void mirror_columns(inout uint sums[SPAN], int unit) {
    [[unroll]] for (int i = 0; i < LEAD; ++i) sums[i] = unit == 0 ? sums[2 * LEAD - i] : sums[i];
    int edge = width - 1 - (2 * OUTPUTS * unit - LEAD);  // the place of the last column
    [[unroll]] for (int i = LEAD; i < SPAN; ++i) {
        [[unroll]] for (int beyond = 1; beyond <= LEAD; ++beyond) {
            if (i - 2 * beyond >= 0) sums[i] = i == edge + beyond ? sums[i - 2 * beyond] : sums[i];
        }
    }
}

void main() {
    int unit = int(gl_GlobalInvocationID.x);
    if (unit * OUTPUTS >= width / 2) return;
    int y = workgroup_id().y, z = workgroup_id().z;

    uint sums[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) sums[i] = 0u;
    [[unroll]] for (int distance = 0; distance <= LEAD; ++distance) {
        if (distance <= MARGIN) {
            uint weight = tap(distance);
            uint above[SPAN] = samples_of(z * plane + mirrored(2 * y - distance, height) * pitch, unit);
            uint below[SPAN] = samples_of(z * plane + mirrored(2 * y + distance, height) * pitch, unit);
            [[unroll]] for (int i = 0; i < SPAN; ++i) sums[i] += weight * (distance == 0 ? above[i] : above[i] + below[i]);
        }
    }
    [[unroll]] for (int i = 0; i < SPAN; ++i) sums[i] = (sums[i] + ((1u << mean_shift) >> 1)) >> mean_shift;
    mirror_columns(sums, unit);

    [[unroll]] for (int pair = 0; pair < OUTPUTS / 2; ++pair) {
        uint word = 0u;
        [[unroll]] for (int i = 0; i < 2; ++i) {
            int centre = 2 * (2 * pair + i) + LEAD;
            uint sum = 32768u;
            [[unroll]] for (int d = -LEAD; d <= LEAD; ++d) {
                if (abs(d) <= MARGIN) sum += tap(abs(d)) * sums[centre + d];
            }
            word |= (sum >> 16) << (16 * i);
        }
        target[z * target_plane + y * target_pitch + unit * (OUTPUTS / 2) + pair] = computed(word);
    }
}
