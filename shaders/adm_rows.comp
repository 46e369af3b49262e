#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Adds the sums of the rows of a scale of adm, each of which is rounded first. A thread has a row.
//
// A workgroup has the digits of three sums, to the base 2^16 and the lowest first: of the horizontal, vertical and diagonal bands. The
// highest digit has a sign. The host adds them.
// Constants: 0 workgroup size (strip). y: masked bands, those of the reference, masked additions. z: frame.

const int BANDS = 3;
const int SUMS = 4 * BANDS;

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
    int kinds;       // of bands
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
    int group = workgroup_id().y * int(gl_NumWorkGroups.x) + workgroup_id().x;
    partials[workgroup_id().z * frame_partials + first_partial + group * SUMS + sum] = value;
}

#include "reduce.glsl"

void main() {
    int row = int(gl_GlobalInvocationID.x), kind = workgroup_id().y;
    int first = (workgroup_id().z * kinds + kind) * BANDS * parts;
    float digits[SUMS];
    [[unroll]] for (int band = 0; band < BANDS; ++band) {
        uvec2 total = uvec2(0u);
        if (row < rows) {
            for (int part = 0; part < parts; ++part) {
                total = add(total, row_sums[(first + band * parts + part) * rows + row]);
            }
            total = round_shift(total, kind == 1 ? band_shift : mask_shift);
        }
        digits[4 * band] = float(total.x & 0xffffu);
        digits[4 * band + 1] = float(total.x >> 16);
        digits[4 * band + 2] = float(total.y & 0xffffu);
        digits[4 * band + 3] = float(int(total.y) >> 16);
    }
    store_sums(digits);
}
