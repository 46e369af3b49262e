#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums the statistic of vif over the windows of a scale, for each workgroup.
//
// Columns are filtered first, and then rows. Every step gives the integers of libvmaf's integer_vif.c, without 64-bit integers
// and doubles (docs/adr/0004).
//
// A workgroup has eight sums: the digits, to the base 2^16 and the lowest first, of the logarithms of the numerator (two) and of
// the denominator (two) and of the distorted variances of flat windows (three), then the number of flat windows. The host adds
// them in double precision.
// Constants: 0 workgroup size (strip), 1 sample format, 5 scale. z: frame.

const int SUMS = 8;

#include "constants.glsl"
#include "integer_constants.glsl"

#ifdef STAGED
#define THREADS VIF_WORKGROUP
layout(local_size_x = VIF_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif

layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;
    int plane;
    int strip;  // rows that a workgroup processes; columns in the strip shape
    int first_partial;
    int frame_partials;
    int mean_shift;    // of the sums of a column
    int square_shift;  // of the sums of squares of a column
    int sample_shift;  // the bits by which samples lie higher in their type
    int gain_limit;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "vif.glsl"
#include "integers.glsl"

#ifdef STAGED
layout(std430, set = 0, binding = 1) readonly restrict buffer Logarithms { uint logarithm_words[]; };
#else
layout(set = 0, binding = 1) uniform usamplerBuffer logarithm_words;
#endif
layout(std430, set = 0, binding = 2) writeonly restrict buffer Partials { float partials[]; };

void store_partial(int sum, float value) {
    int workgroup = workgroup_id().y * int(gl_NumWorkGroups.x) + workgroup_id().x;
    partials[workgroup_id().z * frame_partials + first_partial + workgroup * SUMS + sum] = value;
}

#include "reduce.glsl"
#include "vif_statistic.glsl"

#ifdef STAGED
#include "vif_staged.glsl"
#else
#include "vif_strip.glsl"
#endif
