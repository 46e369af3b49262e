#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// The sums of loss_value.comp and, in the same walk, the gradient of the term's sum by the distorted plane, times `weight`.
//
// The staged shape writes the gradient itself. The strip shape writes what loss_gather.comp makes it of: three maps a plane,
// (include/loss.glsl, by_moment), since it has no memory that threads share.

#define GRADIENT
#include "constants.glsl"
#include "loss_walk.glsl"
