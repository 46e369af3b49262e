#version 450
#extension GL_GOOGLE_include_directive : require
// Computes the contribution of a scale to the value of each plane, from the partial sums of the workgroups.
//
//   deficit = sum / windows,   power = mean^weight,   slope = weight / mean,   mean = 1 - deficit
//
// Power and slope carry the gradient through Wang's product (loss_collect.comp). If a mean is not above 0, power and slope
// are 0, or NaN with `null_negative`. Each plane has one workgroup, which adds in a fixed order. z: plane.

const int THREADS = 64;

layout(local_size_x = THREADS) in;
layout(std430, set = 0, binding = 0) readonly restrict buffer Partials { float partials[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Means { vec4 means[]; };  // deficit, power, slope, mean
layout(push_constant) uniform Push {
    int first_partial;   // where the scale's sums begin within a plane's
    int plane_partials;  // floats from plane to plane
    int groups;          // sums of the scale
    int scale_index;
    int scales;
    int null_negative;
    float weight;
    float windows;
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"

shared float thread_sums[THREADS];

void main() {
    int plane = workgroup_id().z;
    int lane = int(gl_LocalInvocationIndex);
    float sum = 0.0;
    for (int i = lane; i < groups; i += THREADS) sum += partials[plane * plane_partials + first_partial + i];
    thread_sums[lane] = sum;
    barrier();
    if (lane != 0) return;
    float total = 0.0;
    for (int i = 0; i < THREADS; ++i) total += thread_sums[i];
    precise float deficit = total / windows;
    precise float mean = 1.0 - deficit;  // of the deficit as it is written
    float power = 1.0, slope = 0.0;
    if (weight > 0.0 && mean <= 0.0) {
        power = null_negative != 0 && mean < 0.0 ? uintBitsToFloat(0x7fc00000u) : 0.0;
    } else if (weight > 0.0) {
        power = pow(mean, weight);
        slope = weight / mean;
    }
    means[plane * scales + scale_index] = vec4(deficit, power, slope, mean);
}
