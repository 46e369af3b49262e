#version 450
#extension GL_GOOGLE_include_directive : require
// Separates the chroma of a hardware decoder's surfaces (NV12, P010) into a plane of Cb and a plane of Cr.
//
//   cb(x, y) = in(2x, y)   cr(x, y) = in(2x + 1, y)
//
// Rows of the input are twice as long as those of the outputs. So two words of the input become one word of Cb and one of Cr, at
// the same place, from the first word of the buffers to the last. Samples are moved and not changed. The padding of rows is
// moved as well. z: plane, the reference of a frame before its distorted plane.
// Constants: 0 workgroup size, 1 sample format, UINT8 or UINT16.

#include "constants.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int height;  // of each plane
    int pitch;   // from row to row of an output, in words
    int plane;   // from plane to plane of an output, in words
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "format.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Chroma { uvec2 chroma[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Cb { uint cb[]; };
layout(std430, set = 0, binding = 2) writeonly restrict buffer Cr { uint cr[]; };

// Returns the first and the third byte of each word as one word.
uint even_bytes(uvec2 words) {
    uvec2 halves = (words & 0xffu) | (words >> 8 & 0xff00u);
    return halves.x | halves.y << 16;
}

// Returns the lower half of each word as one word.
uint even_halves(uvec2 words) {
    return (words.x & 0xffffu) | words.y << 16;
}

void main() {
    int column = int(gl_GlobalInvocationID.x);  // in words of the outputs
    if (column >= pitch) return;
    int first_row = workgroup_id().y * POINTWISE_ROWS;
    int index = workgroup_id().z * plane + first_row * pitch + column;
    for (int row = first_row; row < min(first_row + POINTWISE_ROWS, height); ++row, index += pitch) {
        uvec2 words = chroma[index];
        cb[index] = FORMAT == UINT8 ? even_bytes(words) : even_halves(words);
        cr[index] = FORMAT == UINT8 ? even_bytes(words >> 8) : even_halves(words >> 16);
    }
}
