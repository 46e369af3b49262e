#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Computes the gradient from the maps that loss_gradient.comp stored, in the shape for CPUs. Each sample gathers the
// derivatives of the windows that contain it, weighted by the same symmetric window, and adds the terms of the mean and of
// the squares (include/loss.glsl).
//
// Maps are 0 beyond the border. z: plane. Constant 0: workgroup size.

#include "constants.glsl"

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) uniform usamplerBuffer maps;  // four floats a texel
layout(set = 0, binding = 1) uniform usamplerBuffer distorted;
layout(set = 0, binding = 2) uniform usamplerBuffer reference;
layout(std430, set = 0, binding = 3) writeonly restrict buffer Target { vec4 target[]; };
layout(push_constant) uniform Push {
    int width;         // samples
    int height;
    int pitch;         // of the planes and the maps from row to row, in blocks of four floats
    int plane;         // from plane to plane, in the same unit; a plane has three maps
    int target_pitch;  // in floats
    int target_plane;
    int strip;         // rows that one workgroup processes
    float weight;
    float data_range;
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "loss_pivot.glsl"
#include "loss_blocks.glsl"
#include "loss_sample.glsl"

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);
    int plane_start = workgroup_id().z * plane;
    int last = (width - 1) >> 2;

    vec2 pivot = plane_pivot(plane_start);

    bool inside[SPAN];
    [[unroll]] for (int i = 0; i < SPAN; ++i) inside[i] = column + i >= 8 && column + i < width + 8;

    float open[3][10][STRIP_COLUMNS];
    [[unroll]] for (int m = 0; m < 3; ++m)
        [[unroll]] for (int k = 0; k < 10; ++k)
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) open[m][k][c] = 0.0;

    for (int i = -10; i < rows; ++i) {
        int row = top + i + 5;
        bool row_inside = row >= 0 && row < height;
        float done[3][STRIP_COLUMNS];
        [[unroll]] for (int m = 0; m < 3; ++m) {
            float map[SPAN];
            int row_start = (workgroup_id().z * 3 + m) * plane + clamp(row, 0, height - 1) * pitch;
            LOAD_SPAN(map, maps, row_start, last, column)
            [[unroll]] for (int s = 0; s < SPAN; ++s) map[s] = row_inside && inside[s] ? map[s] : 0.0;
            ADD_ROW(done[m], open[m], map)
        }
        if (i < 0) continue;
        int row_start = plane_start + (top + i) * pitch;
        int index = workgroup_id().z * target_plane + (top + i) * target_pitch + column;
        [[unroll]] for (int part = 0; part < STRIP_COLUMNS / 4; ++part) {
            vec4 x = block_of(distorted, row_start, min((column >> 2) + part, last));
            vec4 y = block_of(reference, row_start, min((column >> 2) + part, last));
            vec4 u = (x + y) - pivot.x, d = (x - y) - pivot.y, gradient;
            [[unroll]] for (int j = 0; j < 4; ++j)
                gradient[j] = weight * loss_gradient(vec3(done[0][4 * part + j], done[1][4 * part + j], done[2][4 * part + j]),
                                                     u[j], d[j]);
            if (column + 4 * part < target_pitch) target[(index >> 2) + part] = gradient;
        }
    }
}
