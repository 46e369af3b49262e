#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Adds the sums of the rows of a scale of adm, each of which is rounded first. A thread has a row.
//
// A workgroup has the digits of six sums, to the base 2^16 and the lowest first: the masked horizontal, vertical and diagonal
// bands, and those of the reference. The highest digit has a sign. The host adds them.
// Constants: 0 workgroup size (strip). z: frame.

const int SUMS_OF_ROW = 6;
const int SUMS = 4 * SUMS_OF_ROW;

#include "integer_constants.glsl"

#ifdef STAGED
#define THREADS ADM_WORKGROUP
layout(local_size_x = ADM_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif

layout(push_constant) uniform Push {
    int rows;
    int parts;       // that a row is divided into
    int mask_shift;  // of a row of masked bands
    int band_shift;
    int first_partial;
    int frame_partials;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "wide.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Rows { uvec2 row_sums[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Partials { float partials[]; };

void store_partial(int sum, float value) {
    partials[workgroup_id().z * frame_partials + first_partial + workgroup_id().x * SUMS + sum] = value;
}

#include "reduce.glsl"

void main() {
    int row = int(gl_GlobalInvocationID.x);
    float digits[SUMS];
    [[unroll]] for (int sum = 0; sum < SUMS_OF_ROW; ++sum) {
        uvec2 total = uvec2(0u);
        if (row < rows) {
            for (int part = 0; part < parts; ++part) {
                total = add(total, row_sums[((workgroup_id().z * SUMS_OF_ROW + sum) * parts + part) * rows + row]);
            }
            total = round_shift(total, sum < 3 ? mask_shift : band_shift);
        }
        digits[4 * sum] = float(total.x & 0xffffu);
        digits[4 * sum + 1] = float(total.x >> 16);
        digits[4 * sum + 2] = float(total.y & 0xffffu);
        digits[4 * sum + 3] = float(int(total.y) >> 16);
    }
    store_sums(digits);
}
