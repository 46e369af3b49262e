#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums the deficits of the windows of two planes, their distances from 1, for each workgroup: the loss without a gradient.
//
//   1 - l cs, or 1 - cs  (include/loss.glsl) of each window of include/loss_walk.glsl

#include "constants.glsl"
#include "loss_walk.glsl"
