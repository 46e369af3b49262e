#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the next scale of the pyramid: a 9-tap low-pass in both directions, then every second sample.
//
//   out(x, y) = sum over i, j in -4..4 of t(i) t(j) in(2x + i, 2y + j),   out is ceil(w/2) x ceil(h/2)
//
// The build with EXACT uses libvmaf's 9x9 table for t(i) t(j), which has the products rounded to six decimals, and rounds as
// libvmaf does.
//
// Border: symmetric (-1 reads 0, n reads n-1). The kernel writes rows to their whole pitch, so that no reader finds a stray
// NaN. z: plane; the reference and the distorted plane of a frame follow each other. Constant 1: sample format.

#include "constants.glsl"

#ifdef EXACT
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
#else
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { vec4 target[]; };  // rows begin on a vec4
#endif
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

// Adds an even and an odd row of four columns to the four unfinished outputs, and returns the output that the even row
// completes.
vec4 add_rows(vec4 even, vec4 odd, inout vec4 open[4]) {
    vec4 done = open[0] + LOW_PASS[8] * even;
    open[0] = open[1] + LOW_PASS[6] * even + LOW_PASS[7] * odd;
    open[1] = open[2] + LOW_PASS[4] * even + LOW_PASS[5] * odd;
    open[2] = open[3] + LOW_PASS[2] * even + LOW_PASS[3] * odd;
    open[3] = LOW_PASS[0] * even + LOW_PASS[1] * odd;
    return done;
}

#if defined(EXACT)
#include "decimate_exact.glsl"
#elif defined(STAGED)
#include "decimate_staged.glsl"
#else
#include "decimate_strip.glsl"
#endif
