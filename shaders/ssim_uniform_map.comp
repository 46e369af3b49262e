#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Computes what ssim_uniform.comp computes, and also writes the SSIM of every window.
//
//   the four sums of each workgroup, as in ssim_uniform.comp, and after the sums of all workgroups
//   l c s of each 8x8 window, (h-7) x (w-7) floats in rows without a gap

#define MAP
#include "constants.glsl"
#include "uniform.glsl"
