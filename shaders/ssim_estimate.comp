#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// The estimate of ssim_uniform.comp: the picture is cut into fragments of FRAGMENT columns that know nothing of each other.
//
// The same four sums, of those windows whose first column, counted from where their fragment begins, is below
// FRAGMENT_WINDOWS and that lie inside.
//
// P. Mazurek, K. Okarma, "An efficient estimation of the Structural Similarity index using the GPGPU programming
// techniques", 2010.

#define ESTIMATE
#include "constants.glsl"
#include "uniform.glsl"
