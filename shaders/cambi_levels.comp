#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the levels of 10 bits of cambi from the distorted plane, at the size of the encoding, and clears its histograms.
//
// An encoding of less than 10 bits may have dither, which the mean of 2x2 samples removes. A thread makes the two samples of a
// word. Constants: 0 workgroup size, 1 sample format. y: row. z: frame.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int width;  // of the distorted plane
    int height;
    int pitch;  // words
    int plane;
    int target_pitch;
    int target_plane;
    int columns;  // of the target
    int rows;
    int bits;
    int sample_shift;  // the bits by which samples lie higher in their type
    int dither;        // 1: take means
    int cleared;       // words of a frame's histograms
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "format.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Samples { uint words[]; };
layout(std430, set = 0, binding = 1) readonly restrict buffer Nearest { int nearest[]; };  // of each column, then of each row
layout(std430, set = 0, binding = 2) writeonly restrict buffer Target { uint target[]; };
layout(std430, set = 0, binding = 3) writeonly restrict buffer Histograms { uint histograms[]; };

uint level_at(int row, int column) {
    int x = nearest[min(column, columns - 1)], y = nearest[columns + min(row, rows - 1)];
    int first = (2 * workgroup_id().z + 1) * plane + y * pitch;
    uint value = FORMAT == UINT8 ? bitfieldExtract(words[first + (x >> 2)], 8 * (x & 3), 8)
                                 : bitfieldExtract(words[first + (x >> 1)], 16 * (x & 1), 16) >> sample_shift;
    return bits <= 10 ? value << (10 - bits) : (value + (1u << (bits - 11))) >> (bits - 10);
}

void main() {
    int word = int(gl_GlobalInvocationID.x), y = workgroup_id().y, z = workgroup_id().z;
    int threads = int(gl_NumWorkGroups.x * gl_WorkGroupSize.x);
    for (int i = y * threads + word; i < cleared; i += rows * threads) histograms[z * cleared + i] = 0u;

    if (2 * word >= columns) return;
    uint levels[3];
    [[unroll]] for (int i = 0; i < 3; ++i) levels[i] = level_at(y, 2 * word + i);
    if (dither != 0) {  // beyond an edge, the mean is that of fewer samples
        [[unroll]] for (int i = 0; i < 3; ++i) levels[i] += level_at(y + 1, 2 * word + i);
        [[unroll]] for (int i = 0; i < 2; ++i) levels[i] = (levels[i] + levels[i + 1]) >> 2;
    }
    target[z * target_plane + y * target_pitch + word] = levels[0] | levels[1] << 16;
}
