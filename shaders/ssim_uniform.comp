#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Single-scale SSIM over the rectangular 8x8 window, with its luminance, contrast and structure, summed for each workgroup.
//
//   1 - l c s, 1 - l, 1 - c, 1 - s  (include/uniform.glsl) of each window that lies inside, (w-7) x (h-7) of them
//
// Four sums a workgroup, in that order. The host adds them in double and subtracts the mean from 1.

#include "constants.glsl"
#include "uniform.glsl"
