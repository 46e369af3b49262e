#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Decouples the bands of a scale of adm, masks them, and sums the cubes of each row.
//
// A row of a workgroup has six sums of 64 bits: the masked horizontal, vertical and diagonal bands, and those of the reference.
// adm_rows.comp adds them, because libvmaf rounds each row.
// Every step gives the integers of libvmaf's integer_adm.c, without 64-bit integers and doubles (docs/adr/0036).
// Constants: 0 workgroup size (strip), 5 scale. z: frame.

layout(constant_id = 5) const uint SCALE = 0u;

#include "constants.glsl"
#include "integer_constants.glsl"

#ifdef STAGED
#define THREADS ADM_WORKGROUP
layout(local_size_x = ADM_WORKGROUP) in;
layout(std430, set = 0, binding = 0) readonly restrict buffer Bands { uint words[]; };
#else
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) uniform usamplerBuffer bands;  // four words a texel
#endif

layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;
    int plane;
    int strip;  // rows that a workgroup processes
    int top;    // rows above those that count, and below
    int left;
    int gain_limit;
    int edge_weight;      // of the horizontal and of the vertical band
    int diagonal_weight;
    int mask_shift;       // of the cubes of masked bands
    int band_shift;       // of the cubes of bands
    int first_workgroup_y;
    int first_workgroup_z;
};

layout(std430, set = 0, binding = 1) writeonly restrict buffer Rows { uvec2 row_sums[]; };

#include "workgroup.glsl"
#include "wide.glsl"
#include "adm_decouple.glsl"

const int SUMS = 2 * BANDS;

// Returns the row that is read for one that may be beyond an edge: 1 for -1, n - 1 for n.
int reflected(int row, int size) {
    row = abs(row);
    return row < size ? row : 2 * size - 1 - row;
}

// Stores a sum of a row, which is counted from `top`.
void store_row(int sum, int row, uvec2 value) {
    int place = (workgroup_id().z * SUMS + sum) * int(gl_NumWorkGroups.x) + workgroup_id().x;
    row_sums[place * (height - 2 * top) + row] = value;
}

// Returns the sum of a subgroup. 25 bits of 128 threads fit a word.
uvec2 add_subgroup(uvec2 value) {
    const uint DIGIT = (1u << 25) - 1u;
    uvec3 sums = subgroupAdd(uvec3(value.x & DIGIT, low_word(value, 25) & DIGIT, value.y >> 18));
    return add(add(uvec2(sums.x, 0u), uvec2(sums.y << 25, sums.y >> 7)), uvec2(0u, sums.z << 18));
}

#ifdef STAGED
#include "adm_staged.glsl"
#else
#include "adm_strip.glsl"
#endif
