#version 450
#extension GL_GOOGLE_include_directive : require
// Makes the next scale of the average pyramid: means of 2x2 samples.
//
//   out(x, y) = 1/4 * sum over i, j in 0..1 of in(2x + i - odd(w), 2y + j - odd(h)),   out is ceil(w/2) x ceil(h/2)
//
// An odd side has a zero before its first sample. The kernel writes rows to their whole pitch, so that no reader finds a stray
// NaN. z: plane. Constant 0: workgroup size.

#include "constants.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 0) readonly restrict buffer Source { float source[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
layout(push_constant) uniform Push {
    int width;         // of the input, samples
    int height;
    int pitch;         // from row to row, in floats
    int plane;         // from plane to plane, in floats
    int target_pitch;  // the same of the target
    int target_plane;
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"

void main() {
    int column = int(gl_GlobalInvocationID.x);
    if (column >= target_pitch) return;
    int left = 2 * column - (width & 1);
    bool has_left = left >= 0 && left < width, has_right = left + 1 < width;
    int first_row = workgroup_id().y * POINTWISE_ROWS;
    for (int row = first_row; row < min(first_row + POINTWISE_ROWS, (height + 1) >> 1); ++row) {
        int below = 2 * row + 1 - (height & 1);  // the lower of the two rows; the upper one may be outside
        int index = workgroup_id().z * plane + below * pitch + left;
        float sum = (has_left ? source[index] : 0.0) + (has_right ? source[index + 1] : 0.0);
        if (below > 0) sum += (has_left ? source[index - pitch] : 0.0) + (has_right ? source[index - pitch + 1] : 0.0);
        target[workgroup_id().z * target_plane + row * target_pitch + column] = 0.25 * sum;
    }
}
