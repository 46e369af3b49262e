#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Computes the sums of loss_value.comp and, in the same pass, the gradient of the term's sum with respect to the distorted
// plane, times `weight`.
//
// The staged shape writes the gradient itself. The strip shape has no memory that threads share. It writes three maps for each
// plane (include/loss.glsl, by_moment), from which loss_gather.comp makes the gradient.

#define GRADIENT
#include "constants.glsl"
#include "loss_walk.glsl"
