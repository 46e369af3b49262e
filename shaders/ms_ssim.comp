#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums luminance, contrast and structure of one scale for each workgroup.
//
//   1 - l, 1 - c, 1 - s  (include/lcs.glsl) of each of the (w-10) x (h-10) Gaussian 11x11 windows inside the plane
//
// The build with EXACT rounds as libvmaf does. A workgroup has three sums: luminance, contrast, structure. The host adds the
// sums in double precision and subtracts the mean from 1.

#include "constants.glsl"
#include "lcs.glsl"

const int SUMS = 3;

void accept(out float deficits[SUMS], Moments m) {
    vec3 lcs = lcs_deficits(m);
    deficits = float[](lcs.x, lcs.y, lcs.z);
}

#include "window.glsl"
