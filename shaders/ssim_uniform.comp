#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums single-scale SSIM over the rectangular 8x8 window, with its luminance, contrast and structure, for each workgroup.
//
//   1 - l c s, 1 - l, 1 - c, 1 - s  (include/uniform.glsl) of each of the (w-7) x (h-7) windows inside the plane
//
// A workgroup has four sums, in this order. The host adds them in double precision and subtracts the mean from 1. With constant 4,
// the kernel also writes l c s of each window (include/map.glsl).

#include "constants.glsl"
#include "uniform.glsl"
