#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Marks the flat places of cambi: those of whose window of 7x7 more than `needed` samples equal their right and lower neighbours.
//
// A sample without a neighbour is equal to it, and one beyond an edge is not equal. A thread has the two columns of a word and
// walks down a strip, with the counts of the last seven rows. Constants: 0 workgroup size. y: strip. z: frame.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;  // words, of both planes
    int plane;
    int strip;
    int needed;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Levels { uint words[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };

const int REACH = 3;
const int SIDE = 2 * REACH + 1;
const int AROUND = 5;  // words that have the columns of both windows and their right neighbours

uint[AROUND] words_of(int row, int word) {
    uint around[AROUND];
    int first = workgroup_id().z * plane + clamp(row, 0, height - 1) * pitch, last = (width - 1) >> 1;
    [[unroll]] for (int i = 0; i < AROUND; ++i) around[i] = words[first + clamp(word + i - 2, 0, last)];
    return around;
}

// Returns the equal samples of a row in the windows of both columns.
ivec2 count(const uint[AROUND] here, const uint[AROUND] below, int row, int word) {
    ivec2 counts = ivec2(0);
    if (row < 0 || row >= height) return counts;
    [[unroll]] for (int i = 1; i < 2 * AROUND - 1; ++i) {
        int column = 2 * word - 4 + i;
        uint level = sample_of(here[i >> 1], i);
        bool equal = column >= 0 && column < width;
        equal = equal && (column + 1 == width || level == sample_of(here[(i + 1) >> 1], i + 1));
        equal = equal && (row + 1 == height || level == sample_of(below[i >> 1], i));
        if (i < 1 + SIDE) counts.x += int(equal);
        if (i > 1) counts.y += int(equal);
    }
    return counts;
}

void main() {
    int word = int(gl_GlobalInvocationID.x);
    if (2 * word >= width) return;
    int top = workgroup_id().y * strip, bottom = min(top + strip, height);
    ivec2 counts[SIDE];
    [[unroll]] for (int i = 0; i < SIDE; ++i) counts[i] = ivec2(0);
    uint here[AROUND] = words_of(top - REACH, word);
    for (int row = top - REACH; row < bottom + REACH; ++row) {
        uint below[AROUND] = words_of(row + 1, word);
        [[unroll]] for (int i = 0; i < SIDE - 1; ++i) counts[i] = counts[i + 1];
        counts[SIDE - 1] = count(here, below, row, word);
        here = below;
        int y = row - REACH;
        if (y < top) continue;
        ivec2 sums = ivec2(0);
        [[unroll]] for (int i = 0; i < SIDE; ++i) sums += counts[i];
        int place = workgroup_id().z * plane + y * pitch + word;
        target[place] = words[place] | (sums.x > needed ? FLAT : 0u) | (sums.y > needed ? FLAT << 16 : 0u);
    }
}
