#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums the magnitudes of the blurred difference between a reference and an earlier one, for each workgroup.
//
// The five taps filter columns, then rows; each pass is rounded to units of 1/256 of a sample of 8 bits, as in libvmaf's
// integer_motion.c. The references before the first one of a batch are in a buffer of their own.
//
// A workgroup has two sums: the digits of its sum to the base 2^16, the lowest first. The host adds them in double precision.
// Constants: 0 workgroup size (strip), 1 sample format. z: frame.

const int SUMS = 2;

#include "constants.glsl"
#include "integer_constants.glsl"

#ifdef STAGED
#define THREADS MOTION_WORKGROUP
layout(local_size_x = MOTION_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif

layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;
    int plane;
    int strip;  // rows that a workgroup processes
    int first_partial;
    int frame_partials;
    int bits;
    int sample_shift;  // the bits by which samples lie higher in their type
    int distance;      // frames to the earlier reference
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "edge.glsl"
#include "format.glsl"

#ifdef STAGED
layout(std430, set = 0, binding = 0) readonly restrict buffer Samples { uint words[]; };
layout(std430, set = 0, binding = 1) readonly restrict buffer Lead { uint lead_words[]; };
#else
layout(set = 0, binding = 0) uniform usamplerBuffer blocks;
layout(set = 0, binding = 1) uniform usamplerBuffer lead_blocks;
#endif
layout(std430, set = 0, binding = 2) writeonly restrict buffer Partials { float partials[]; };

void store_partial(int sum, float value) {
    int workgroup = workgroup_id().y * int(gl_NumWorkGroups.x) + workgroup_id().x;
    partials[workgroup_id().z * frame_partials + first_partial + workgroup * SUMS + sum] = value;
}

#include "reduce.glsl"

const int REACH = 2;
const int SIDE = 2 * REACH + 1;

// Returns the sum of taps times values, divided by 2^shift and rounded, for values below 2^16 in magnitude. The sum has 33 bits
// with its sign, so the values are 256 h + l.
int blurred(const int values[SIDE], int shift) {
    int high = 0, low = 0;
    [[unroll]] for (int i = 0; i < SIDE; ++i) {
        high += MOTION_FILTER[i] * (values[i] >> 8);
        low += MOTION_FILTER[i] * (values[i] & 255);
    }
    return (high + ((low + (1 << (shift - 1))) >> 8)) >> (shift - 8);
}

// The same for the columns. The differences of samples of 8 bits are small enough for one sum.
int blurred_column(const int values[SIDE]) {
    if (FORMAT != UINT8) return blurred(values, bits);
    int sum = 128;
    [[unroll]] for (int i = 0; i < SIDE; ++i) sum += MOTION_FILTER[i] * values[i];
    return sum >> 8;
}

void store_magnitudes(uint sum) {
    store_sums(float[](float(sum & 0xffffu), float(sum >> 16)));
}

#ifdef STAGED
#include "motion_staged.glsl"
#else
#include "motion_strip.glsl"
#endif
