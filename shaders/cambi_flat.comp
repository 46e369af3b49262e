#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Marks the flat places of cambi: those of whose window of 7x7 more than `needed` samples equal their right and lower neighbours.
//
// A sample without a neighbour is equal to it, and one beyond an edge is not equal. A thread has a block of eight columns and
// walks down a strip, with the equal samples of the last seven rows. Constants: 0 workgroup size. y: strip. z: frame.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;  // of the source
    int plane;
    int target_pitch;  // words
    int target_plane;
    int strip;
    int needed;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "store.glsl"
#include "blocks.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uvec4 target[]; };

const int REACH = 3;
const int SIDE = 2 * REACH + 1;
const int AROUND = BLOCK + 2 * REACH + 1;  // the columns of all windows and the neighbour of the last one

struct Row {
    uvec4 block;  // the samples of the thread's columns
    uint samples[AROUND];
};

Row row_at(int row, int block) {
    int of_row = blocks_of(pitch), first = workgroup_id().z * blocks_of(plane) + clamp(row, 0, height - 1) * of_row;
    uvec4 before = block_at(first + max(block - 1, 0)), here = block_at(first + block);
    uvec4 after = block_at(first + min(block + 1, of_row - 1));
    uint words[12] = uint[](
        before.x, before.y, before.z, before.w, here.x, here.y, here.z, here.w, after.x, after.y, after.z, after.w
    );
    uint samples[AROUND];
    [[unroll]] for (int i = 0; i < AROUND; ++i) samples[i] = sample_of(words[(i + BLOCK - REACH) >> 1], i + BLOCK - REACH);
    return Row(here, samples);
}

// Returns the equal samples of a row, four bits each: of the first seven columns of the windows, and of the second seven.
uvec2 equals(Row here, Row below, int row, int block) {
    uvec2 found = uvec2(0u);
    [[unroll]] for (int i = 0; i < AROUND - 1; ++i) {
        int column = BLOCK * block + i - REACH;
        bool equal = column + 1 == width || here.samples[i] == here.samples[i + 1];
        equal = equal && (row + 1 == height || here.samples[i] == below.samples[i]) && column >= 0 && column < width;
        found[i / SIDE] |= equal ? 1u << (4 * (i % SIDE)) : 0u;
    }
    return row >= 0 && row < height ? found : uvec2(0u);
}

void main() {
    int block = int(gl_GlobalInvocationID.x);
    if (BLOCK * block >= width) return;
    int top = workgroup_id().y * strip, bottom = min(top + strip, height);
    uvec2 counts = uvec2(0u), rows[SIDE];
    [[unroll]] for (int i = 0; i < SIDE; ++i) rows[i] = uvec2(0u);
    Row here = row_at(top - REACH, block);
    uvec4 blocks_here[REACH + 1];
    [[unroll]] for (int i = 0; i <= REACH; ++i) blocks_here[i] = uvec4(0u);
    for (int row = top - REACH; row < bottom + REACH; ++row) {
        Row below = row_at(row + 1, block);
        uvec2 found = equals(here, below, row, block);
        counts += found - rows[0];
        [[unroll]] for (int i = 0; i < SIDE - 1; ++i) rows[i] = rows[i + 1];
        rows[SIDE - 1] = found;
        [[unroll]] for (int i = 0; i < REACH; ++i) blocks_here[i] = blocks_here[i + 1];
        blocks_here[REACH] = here.block;
        here = below;

        int y = row - REACH;
        if (y < top) continue;
        uint of_columns[AROUND - 1];
        [[unroll]] for (int i = 0; i < AROUND - 1; ++i) of_columns[i] = bitfieldExtract(counts[i / SIDE], 4 * (i % SIDE), 4);
        uint of_window = 0u;
        [[unroll]] for (int i = 0; i < SIDE - 1; ++i) of_window += of_columns[i];
        uvec4 words = blocks_here[0];
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {
            of_window += of_columns[i + SIDE - 1];
            words[i >> 1] |= of_window > uint(needed) ? FLAT << (16 * (i & 1)) : 0u;
            of_window -= of_columns[i];
        }
        target[computed((workgroup_id().z * target_plane + y * target_pitch >> 2) + block)] = computed(words);
    }
}
