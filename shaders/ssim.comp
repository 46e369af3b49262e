#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums SSIM with its luminance, contrast and structure for each workgroup: the kernel of float_ssim.
//
//   1 - l c s, 1 - l, 1 - c, 1 - s  (include/lcs.glsl) of each of the (w-10) x (h-10) Gaussian 11x11 windows inside the plane
//
// A workgroup has four sums, in this order. The host adds the sums in double precision and subtracts the mean from 1. With
// constant 4, the kernel also writes l c s of each window (include/map.glsl). The build with FAST adds in float32, the other one
// rounds as libvmaf does.

#include "constants.glsl"
#include "lcs.glsl"

const int SUMS = 4;
const int COUNTS = 0;
#define WITH_MAPS

void accept(out float deficits[SUMS], Moments m) {
    Lcs window = lcs_of(m);
    vec3 lcs = window.deficits / window.denominators;  // one division would be faster, but a sample far beyond its range overflows
    float product = lcs.x + (1.0 - lcs.x) * (lcs.y + (1.0 - lcs.y) * lcs.z);
    deficits = float[](product, lcs.x, lcs.y, lcs.z);
}

#include "window.glsl"
