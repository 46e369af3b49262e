#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the levels of 10 bits of cambi from the distorted plane, at the size of the encoding, and clears its histograms.
// CPUs have cambi_places.comp in its place and in that of cambi_flat.comp.
//
// An encoding of less than 10 bits may have dither, which the mean of 2x2 samples removes. A thread makes the eight samples of a
// block of a row and walks down a strip. Constants: 0 workgroup size, 1 sample format, 7 whether the plane is scaled. y: strip.
// z: frame.

layout(local_size_x_id = 0) in;
layout(constant_id = 7) const uint SCALED = 0;
layout(push_constant) uniform Push {
    int height;  // of the distorted plane
    int pitch;
    int plane;
    int target_pitch;  // words
    int target_plane;
    int strip;
    int columns;  // of the target
    int rows;
    int bits;
    int sample_shift;  // the bits by which samples lie higher in their type
    int dither;        // 1: take means
    int cleared;       // words of a frame's histograms
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "format.glsl"
#include "store.glsl"
#include "blocks.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 1) readonly restrict buffer Nearest { int nearest[]; };  // of each column, then of each row
layout(std430, set = 0, binding = 2) writeonly restrict buffer Target { uvec4 target[]; };
layout(std430, set = 0, binding = 3) writeonly restrict buffer Histograms { uint histograms[]; };

const int COUNT = BLOCK + 1;  // with the neighbour of the last sample

uint value_in(uvec4 block, int column) {
    return FORMAT == UINT8 ? bitfieldExtract(block[column >> 2 & 3], 8 * (column & 3), 8) : sample_of(block[column >> 1 & 3], column);
}

// Returns the levels of a block of the target and the one after it, and beyond the edges the last ones.
uint[COUNT] levels_of(int row, int block) {
    int first = (2 * workgroup_id().z + 1) * blocks_of(plane), of_row = blocks_of(pitch), y = min(row, rows - 1);
    uint values[COUNT];
    if (SCALED != 0) {
        first += nearest[columns + y] * of_row;
        [[unroll]] for (int i = 0; i < COUNT; ++i) {
            int x = nearest[min(BLOCK * block + i, columns - 1)];
            values[i] = value_in(block_at(first + (FORMAT == UINT8 ? x >> 4 : x >> 3)), x);
        }
    } else {
        first += y * of_row;
        int after = min(block + 1, of_row - 1);
        if (FORMAT == UINT8) {
            uvec4 pair = block_at(first + (block >> 1)), next = block_at(first + min((block >> 1) + 1, of_row - 1));
            bool second = (block & 1) != 0;
            uvec3 words = second ? uvec3(pair.zw, next.x) : pair.xyz;
            [[unroll]] for (int i = 0; i < COUNT; ++i) values[i] = bitfieldExtract(words[i >> 2], 8 * (i & 3), 8);
        } else {
            uvec4 words = block_at(first + block);
            [[unroll]] for (int i = 0; i < BLOCK; ++i) values[i] = sample_of(words[i >> 1], i);
            values[BLOCK] = sample_of(block_at(first + after).x, 0);
        }
    }
    int more = max(10 - bits, 0), less = max(bits - 10, 0);
    uint half_of = (1u << less) >> 1;
    [[unroll]] for (int i = 0; i < COUNT; ++i) {
        values[i] = ((values[i] >> sample_shift << more) + half_of) >> less;
        if (i > 0) values[i] = BLOCK * block + i < columns ? values[i] : values[i - 1];
    }
    return values;
}

void main() {
    int block = int(gl_GlobalInvocationID.x), strips = (rows + strip - 1) / strip, z = workgroup_id().z;
    int threads = int(gl_NumWorkGroups.x * gl_WorkGroupSize.x);
    for (int i = workgroup_id().y * threads + block; i < cleared; i += strips * threads) histograms[z * cleared + i] = 0u;

    if (BLOCK * block >= columns) return;
    int top = workgroup_id().y * strip, bottom = min(top + strip, rows);
    uint here[COUNT] = levels_of(top, block);
    for (int y = top; y < bottom; ++y) {
        uint below[COUNT] = levels_of(y + 1, block);
        uint levels[BLOCK];
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {  // beyond an edge, the mean is that of fewer samples
            uint mean = (here[i] + here[i + 1] + below[i] + below[i + 1]) >> 2;
            levels[i] = dither != 0 ? mean : here[i];
        }
        uvec4 words;
        [[unroll]] for (int i = 0; i < 4; ++i) words[i] = levels[2 * i] | levels[2 * i + 1] << 16;
        target[computed((z * target_plane + y * target_pitch >> 2) + block)] = computed(words);
        here = below;
    }
}
