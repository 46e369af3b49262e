#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Single-scale SSIM with its luminance, contrast and structure, summed for each workgroup.
//
//   1 - l c s, 1 - l, 1 - c, 1 - s  (include/lcs.glsl) of each 11x11 Gaussian window that lies inside, (w-10) x (h-10) of them
//
// Built with EXACT it rounds as libvmaf does. Four sums a workgroup, in that order. The host adds them in double and subtracts the mean from 1.

#include "ssim.glsl"
#include "window.glsl"
