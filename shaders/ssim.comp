#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums single-scale SSIM with its luminance, contrast and structure for each workgroup.
//
//   1 - l c s, 1 - l, 1 - c, 1 - s  (include/lcs.glsl) of each of the (w-10) x (h-10) Gaussian 11x11 windows inside the plane
//
// The build with EXACT rounds as libvmaf does. A workgroup has four sums, in this order. The host adds the sums in double
// precision and subtracts the mean from 1.

#include "ssim.glsl"
#include "window.glsl"
