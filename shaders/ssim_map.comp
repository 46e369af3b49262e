#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// ssim.comp that keeps what it sums.
//
//   the four sums of each workgroup, as ssim.comp leaves them, and after those of all workgroups
//   l c s of each 11x11 window, (h-10) x (w-10) floats in rows without a gap
//
// Built with EXACT it rounds as libvmaf does.

#define MAP
#include "ssim.glsl"
#include "window.glsl"
