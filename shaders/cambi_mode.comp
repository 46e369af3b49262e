#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the planes of a scale of cambi: every `stride`-th sample of every `stride`-th row, without specks.
//
// A level becomes the mode of three in its row, then of three in its column. The first and the last row stay as they are. A
// place is flat if it was. A thread makes the eight samples of a block of a row and walks down a strip. Constants: 0 workgroup
// size. y: strip. z: frame.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int height;  // of the source
    int pitch;
    int plane;
    int target_pitch;  // words
    int target_plane;
    int strip;
    int columns;  // of the target
    int rows;
    int stride;  // 1 or 2
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "store.glsl"
#include "blocks.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uvec4 target[]; };

struct Row {
    uint samples[BLOCK];  // of the source
    uint modes[BLOCK];
};

// Returns the number that two of three have, or the smallest of them.
uint mode(uint first, uint second, uint third) {
    uint smallest = min(min(first, second), third);
    uint of_later = second == third ? second : smallest;
    return first == second || first == third ? first : of_later;
}

// Returns the samples of a block of the target, and the modes of their levels in their row.
Row row_at(int row, int block) {
    int of_row = blocks_of(pitch);
    int first = workgroup_id().z * blocks_of(plane) + stride * clamp(row, 0, rows - 1) * of_row, begin = stride * block;
    uvec4 around[4];  // with a stride of 1, only three count
    [[unroll]] for (int i = 0; i < 4; ++i) around[i] = block_at(first + clamp(begin + i - 1, 0, of_row - 1));
    uint samples[BLOCK + 2];
    [[unroll]] for (int i = 0; i < BLOCK + 2; ++i) {
        int near = BLOCK + i - 1, far = BLOCK + 2 * (i - 1);
        uint single = sample_of(around[near >> 3][near >> 1 & 3], near), other = sample_of(around[far >> 3][far >> 1 & 3], far);
        samples[i] = stride == 1 ? single : other;
    }
    Row found;
    [[unroll]] for (int i = 0; i < BLOCK; ++i) {
        int column = BLOCK * block + i;
        uint level = samples[i + 1] & LEVEL, of_three = mode(samples[i] & LEVEL, level, samples[i + 2] & LEVEL);
        found.samples[i] = samples[i + 1];
        found.modes[i] = column == 0 || column == columns - 1 ? level : of_three;
    }
    return found;
}

void main() {
    int block = int(gl_GlobalInvocationID.x);
    if (BLOCK * block >= columns) return;
    int top = workgroup_id().y * strip, bottom = min(top + strip, rows);
    Row above = row_at(top - 1, block), here = row_at(top, block);
    for (int y = top; y < bottom; ++y) {
        Row below = row_at(y + 1, block);
        uvec4 words;
        [[unroll]] for (int i = 0; i < 4; ++i) words[i] = 0u;
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {
            uint made = mode(above.modes[i], here.modes[i], below.modes[i]) | here.samples[i] & FLAT;
            made = y == 0 || y == rows - 1 ? here.samples[i] : made;
            words[i >> 1] |= made << (16 * (i & 1));
        }
        target[computed((workgroup_id().z * target_plane + y * target_pitch >> 2) + block)] = computed(words);
        above = here;
        here = below;
    }
}
