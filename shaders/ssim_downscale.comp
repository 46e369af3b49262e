#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Downscales the planes of float_ssim: each output is the mean of a box centred on every factor-th sample.
//
//   out(x, y) = 1/factor^2 * sum over i, j in -factor/2 .. -factor/2 + factor - 1 of in(factor x + i, factor y + j)
//
// The kernel sums as libvmaf does (include/exact.glsl). This costs no time here, because reading the samples takes longer.
// Border: symmetric (-1 reads 0, n reads n-1), in both directions. A thread makes one sample.
// The kernel writes rows to their whole pitch, so that no reader finds a stray NaN. z: plane.
// Constants: 0 workgroup size, 1 sample format.

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
layout(push_constant) uniform Push {
    int width;         // of the input, samples
    int height;
    int pitch;         // from row to row, in the units of samples.glsl
    int plane;         // from plane to plane, in the same unit
    int target_pitch;  // the same in floats
    int target_plane;
    int factor;
    float weight;      // 1 / factor^2
    float scale;       // of UINT16 samples
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "border.glsl"
#include "exact.glsl"
#include "samples.glsl"

void main() {
    int column = int(gl_GlobalInvocationID.x);
    if (column >= target_pitch) return;
    int first_row = workgroup_id().y * factor - (factor >> 1);
    int first_column = column * factor - (factor >> 1);
    ExactSum sum = ExactSum(0.0, 0.0);
    for (int j = 0; j < factor; ++j) {
        int row = workgroup_id().z * plane + mirror(first_row + j, height) * pitch;
        for (int i = 0; i < factor; ++i) 
            add_product(sum, sample_at(row, clamp(mirror(first_column + i, width), 0, width - 1)), weight);
    }
    target[workgroup_id().z * target_plane + workgroup_id().y * target_pitch + column] = rounded(sum);
}
