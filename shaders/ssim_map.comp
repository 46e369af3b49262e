#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Computes what ssim.comp computes, and also writes the SSIM of every window.
//
//   the four sums of each workgroup, as in ssim.comp, and after the sums of all workgroups
//   l c s of each 11x11 window, (h-10) x (w-10) floats in rows without a gap
//
// The build with EXACT rounds as libvmaf does.

#define MAP
#include "ssim.glsl"
#include "window.glsl"
