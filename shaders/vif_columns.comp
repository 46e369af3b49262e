#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Filters the columns of a scale of vif: the means of both planes, of their squares and of their product around each sample.
//
// A thread has eight columns. Each sample has four words: the means of the planes in the halves of the first, then reference
// squared, distorted squared and the product.
// Constants: 0 workgroup size, 1 sample format, 5 scale. y: pair of rows. z: frame.

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
#include "store.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Moments { uvec4 moments[]; };

const int COLUMNS = STRIP_COLUMNS;
const int ROWS = 2;  // of a thread: they share all but one of the rows of samples that they read
const int SPAN = 2 * 8 + ROWS;
const int LAST = 2 * MARGIN + ROWS;
const int WORDS = 4;  // of eight samples of 16 bits

// Returns the words with the samples of a thread from the block that has them.
uint[WORDS] words_of(uvec4 block, int first) {
    if (FORMAT != UINT8) return uint[](block.x, block.y, block.z, block.w);
    bool is_second = (first & 8) != 0;  // of the two threads of a block
    return uint[](is_second ? block.z : block.x, is_second ? block.w : block.y, 0u, 0u);
}

uint sample_of(uint words[WORDS], int c) {
    if (FORMAT == UINT8) return bitfieldExtract(words[c >> 2], 8 * (c & 3), 8);
    return bitfieldExtract(words[c >> 1], 16 * (c & 1), 16) >> sample_shift;
}

void main() {
    int first = int(gl_GlobalInvocationID.x) * COLUMNS;
    if (first >= width) return;
    int y = workgroup_id().y * ROWS, z = workgroup_id().z;

    uint references[SPAN][WORDS], distorteds[SPAN][WORDS];
    [[unroll]] for (int i = 0; i < SPAN; ++i) {
        if (i < LAST) {
            int row = clamp(mirrored(y + i - MARGIN, height), 0, height - 1);
            int place = z * 2 * plane + row * pitch + (FORMAT == UINT8 ? first >> 4 : first >> 3);
            references[i] = words_of(texelFetch(blocks, place), first);
            distorteds[i] = words_of(texelFetch(blocks, place + plane), first);
        }
    }

    // One column after the other: the sums of one stay in registers.
    uint half_unit = (1u << mean_shift) >> 1;
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        uvec2 means[ROWS];
        uvec3 lows[ROWS], highs[ROWS];
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            means[r] = uvec2(0u);
            lows[r] = highs[r] = uvec3(0u);
        }
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            if (i < LAST) {
                uvec2 both = uvec2(sample_of(references[i], c), sample_of(distorteds[i], c));
                uvec3 products = uvec3(both * both, both.x * both.y);
                [[unroll]] for (int r = 0; r < ROWS; ++r) {
                    int distance = abs(i - r - MARGIN);
                    if (distance <= MARGIN) {
                        uint weight = tap(distance);
                        means[r] += weight * both;
                        lows[r] += weight * (FORMAT == UINT8 ? products : products & 0xffffu);
                        if (FORMAT != UINT8) highs[r] += weight * (products >> 16);
                    }
                }
            }
        }
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
            if (first + c < width && y + r < height) {
                uvec2 mean = (means[r] + half_unit) >> mean_shift;
                uvec3 squares;
                [[unroll]] for (int i = 0; i < 3; ++i) squares[i] = round_halves(highs[r][i], lows[r][i], square_shift);
                moments[(z * height + y + r) * width + first + c] = computed(uvec4(mean.x | mean.y << 16, squares));
            }
        }
    }
}
