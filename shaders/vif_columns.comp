#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Filters the columns of a scale of vif: the means of both planes, of their squares and of their product around each sample.
//
// A thread has eight columns. Each sample has four words: the means of the planes in the halves of the first, then reference
// squared, distorted squared and the product.
// Constants: 0 workgroup size, 1 sample format, 5 scale. y: row. z: frame.

layout(local_size_x_id = 0) in;

#include "constants.glsl"
#include "integer_constants.glsl"
#include "vif.glsl"

layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;
    int plane;
    int mean_shift;    // of the sums of a column
    int square_shift;  // of the sums of squares of a column
    int sample_shift;  // the bits by which samples lie higher in their type
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "integers.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Moments { uvec4 moments[]; };

const int COLUMNS = STRIP_COLUMNS;

// Returns the samples of a thread from the block that has them.
uint[COLUMNS] samples_of(uvec4 block, int first) {
    uint samples[COLUMNS];
    if (FORMAT == UINT8) {
        uvec2 words = (first & 8) == 0 ? block.xy : block.zw;
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) samples[c] = bitfieldExtract(words[c >> 2], 8 * (c & 3), 8);
    } else {
        [[unroll]] for (int c = 0; c < COLUMNS; ++c) samples[c] = bitfieldExtract(block[c >> 1], 16 * (c & 1), 16) >> sample_shift;
    }
    return samples;
}

void main() {
    int first = int(gl_GlobalInvocationID.x) * COLUMNS;
    if (first >= width) return;
    int y = workgroup_id().y, z = workgroup_id().z;

    uvec2 means[COLUMNS];
    uvec3 lows[COLUMNS], highs[COLUMNS];
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        means[c] = uvec2(0u);
        lows[c] = highs[c] = uvec3(0u);
    }
    [[unroll]] for (int distance = -8; distance <= 8; ++distance) {
        if (abs(distance) <= MARGIN) {
            int place = z * 2 * plane + mirrored(y + distance, height) * pitch + (FORMAT == UINT8 ? first >> 4 : first >> 3);
            uint reference[COLUMNS] = samples_of(texelFetch(blocks, place), first);
            uint distorted[COLUMNS] = samples_of(texelFetch(blocks, place + plane), first);
            uint weight = tap(abs(distance));
            [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
                uvec2 both = uvec2(reference[c], distorted[c]), weighted = weight * both;
                means[c] += weighted;
                if (FORMAT == UINT8) {
                    lows[c] += uvec3(weighted * both, weighted.x * both.y);
                } else {
                    uvec3 products = uvec3(both * both, both.x * both.y);
                    lows[c] += weight * (products & 0xffffu);
                    highs[c] += weight * (products >> 16);
                }
            }
        }
    }
    uint half_unit = (1u << mean_shift) >> 1;
    int target = (z * height + y) * width + first;
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        if (first + c < width) {
            uvec2 mean = (means[c] + half_unit) >> mean_shift;
            uvec3 squares;
            [[unroll]] for (int i = 0; i < 3; ++i) squares[i] = round_halves(highs[c][i], lows[c][i], square_shift);
            moments[target + c] = uvec4(mean.x | mean.y << 16, squares);
        }
    }
}
