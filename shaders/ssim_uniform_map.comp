#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// ssim_uniform.comp that keeps what it sums.
//
//   the four sums of each workgroup, as ssim_uniform.comp leaves them, and after those of all workgroups
//   l c s of each 8x8 window, (h-7) x (w-7) floats in rows without a gap

#define MAP
#include "constants.glsl"
#include "uniform.glsl"
