#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Converts samples of any depth, or floats of any range, to a float plane on the 0..255 scale.
//
//   out(x, y) = scale * in(x, y)
//
// The kernel writes rows to their whole pitch, so that no reader finds a stray NaN. z: frame; each plane has one dispatch.
// Constants: 0 workgroup size, 1 sample format.

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;         // from row to row, in the units of samples.glsl
    int plane;         // from plane to plane, in the same unit
    int target_pitch;  // the same in floats
    int target_plane;
    int first_plane;   // 0 reference, 1 distorted
    float scale;       // 255 / range
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "constants.glsl"
#include "samples.glsl"



void main() {
    int column = int(gl_GlobalInvocationID.x) * INGEST_COLUMNS;
    int row = workgroup_id().y;
    int image = workgroup_id().z * 2 + first_plane;
    float samples[INGEST_COLUMNS];
    LOAD_SAMPLES(samples, INGEST_COLUMNS, image * plane + row * pitch, unit_of(width - 1), column, 0)
    int out_index = image * target_plane + row * target_pitch + column;
    [[unroll]] for (int c = 0; c < INGEST_COLUMNS; ++c) {
        float value = FORMAT == UINT16 ? samples[c] : scale * samples[c];
        if (column + c < target_pitch) target[out_index + c] = column + c < width ? value : 0.0;
    }
}
