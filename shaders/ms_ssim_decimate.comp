#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the next scale of the pyramid: a 9-tap low-pass in both directions, then every second sample.
//
//   out(x, y) = sum over i, j in -4..4 of t(i) t(j) in(2x + i, 2y + j),   out is ceil(w/2) x ceil(h/2)
//
// t(i) t(j) are libvmaf's 9x9 table, which has the products rounded to six decimals, and sums are rounded as libvmaf does. The
// build with FAST is separable, and adds in float32.
//
// Border: symmetric (-1 reads 0, n reads n-1). The kernel writes rows to their whole pitch, so that no reader finds a stray
// NaN. z: plane; the reference and the distorted plane of a frame follow each other. Constant 1: sample format.

#include "constants.glsl"

#if defined(STAGED) && !defined(FAST)
#define STORED vec2  // two outputs a thread
#else
#define STORED vec4
#endif
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { STORED target[]; };  // rows begin on a vec4
layout(push_constant) uniform Push {
    int width;         // of the input, samples
    int height;
    int pitch;         // from row to row, in the units of samples.glsl
    int plane;         // from plane to plane, in the same unit
    int target_pitch;  // the same in floats
    int target_plane;
    int strip;         // output rows of a strip
    float scale;       // of UINT16 samples
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "border.glsl"
#include "samples.glsl"

#if defined(FAST) && defined(STAGED)
#include "decimate_fast_staged.glsl"
#elif defined(FAST)
#include "decimate_fast_strip.glsl"
#else
#include "decimate_exact.glsl"
#endif
