#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Computes the estimate of ssim_uniform.comp. The picture is divided into fragments of FRAGMENT columns, and no window crosses
// the edge of a fragment.
//
// The four sums are the same, over the windows inside the picture whose first column, counted from the start of the fragment,
// is below FRAGMENT_WINDOWS.
//
// P. Mazurek, K. Okarma, "An efficient estimation of the Structural Similarity index using the GPGPU programming
// techniques", 2010.

#define ESTIMATE
#include "constants.glsl"
#include "uniform.glsl"
