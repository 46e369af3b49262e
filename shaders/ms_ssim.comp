#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums luminance, contrast and structure for each workgroup: the kernel of float_ms_ssim, for one scale.
//
//   l, c, s  (include/lcs.glsl) of each of the (w-10) x (h-10) Gaussian 11x11 windows inside the plane
//
// The host raises the mean of each to a power, whose slope is steep near 0. So a mean near 0 needs its digits as much as a mean near 1.
// A value above a half is added as its distance from 1; any other value is subtracted, and counted:
//
//   sum of values = windows - count - sum,   sum of (1 - v, or -v),   count of values that were subtracted
//
// A workgroup has six numbers: the sums of l, c, s, then their counts. The host adds them in double precision. The build with FAST adds
// the window in float32, the other one rounds as libvmaf does.

#include "constants.glsl"
#include "lcs.glsl"

const int SUMS = 6;
const int COUNTS = 3;

void accept(out float numbers[SUMS], Moments m) {
    Lcs window = lcs_of(m);
    bvec3 small = lessThan(window.values, window.deficits);
    vec3 numerators = window.deficits;
    vec3 counts = vec3(0.0);
    if (any(small)) {  // few windows of usual pictures: an H100 is up to 2 % faster than with a choice in every window
        numerators = mix(window.deficits, -window.values, small);
        counts = vec3(small);
    }
    vec3 sums = numerators / window.denominators;
    numbers = float[](sums.x, sums.y, sums.z, counts.x, counts.y, counts.z);
}

#include "window.glsl"
