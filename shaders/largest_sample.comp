#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Finds the largest integer sample of a plane. The host compares it with the largest sample of the depth.
//
//   out(workgroup) = max of in(x, y) over the rows and columns of the workgroup
//
// Samples beyond the width are padding and do not count. The host takes the maximum of all workgroups. z: plane; the
// workgroups of the reference come first, then those of the distorted plane.
// Constants: 0 workgroup size, 1 sample format, UINT8 or UINT16. There is only a staged build: if the device is the CPU, the
// host itself finds the largest sample.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int width;          // of the planes, samples
    int height;
    int pitch;          // from row to row, in words
    int plane;          // from plane to plane, in words
    int strip;          // rows that one workgroup processes
    int frame_partials; // words from frame to frame of the target
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "format.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Samples { uint words[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };

shared uint subgroup_largest[16];  // a workgroup has 64 threads, and no subgroup is smaller than 4

void main() {
    int column = int(gl_GlobalInvocationID.x);  // in words
    int per_word = FORMAT == UINT8 ? 4 : 2;
    int inside = width - column * per_word;  // samples of the word that belong to the picture
    uint largest = 0u;
    if (inside > 0) {
        int top = workgroup_id().y * strip;
        int word = workgroup_id().z * plane + top * pitch + column;
        for (int row = min(strip, height - top); row > 0; --row, word += pitch) {
            uint samples = words[word];
            if (FORMAT == UINT8) {
                [[unroll]] for (int i = 0; i < 4; ++i)
                    if (i < inside) largest = max(largest, bitfieldExtract(samples, 8 * i, 8));
            } else {
                largest = max(largest, samples & 0xffffu);
                if (inside > 1) largest = max(largest, samples >> 16);
            }
        }
    }
    largest = subgroupMax(largest);
    if (subgroupElect()) subgroup_largest[gl_SubgroupID] = largest;
    barrier();
    if (gl_LocalInvocationIndex != 0u) return;
    for (uint i = 1u; i < gl_NumSubgroups; ++i) largest = max(largest, subgroup_largest[i]);
    int columns = int(gl_NumWorkGroups.x), groups = columns * ((height + strip - 1) / strip);  // a dispatch may have fewer rows
    int group = workgroup_id().y * columns + int(gl_WorkGroupID.x);
    int image = workgroup_id().z;
    target[(image >> 1) * frame_partials + (image & 1) * groups + group] = largest;
}
