#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes the planes of a scale of cambi: every `stride`-th sample of every `stride`-th row, without specks.
//
// A level becomes the mode of three in its row, then of three in its column. The first and the last row stay as they are. A
// place is flat if it was. A thread makes the two samples of a word. Constants: 0 workgroup size. y: row. z: frame.

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int pitch;  // words
    int plane;
    int target_pitch;
    int target_plane;
    int columns;  // of the target
    int rows;
    int stride;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Source { uint words[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };

uint source_at(int row, int column) {
    int x = stride * clamp(column, 0, columns - 1), y = stride * clamp(row, 0, rows - 1);
    return sample_of(words[workgroup_id().z * plane + y * pitch + (x >> 1)], x);
}

// Returns the number that two of three have, or the smallest of them.
uint mode(uint first, uint second, uint third) {
    if (first == second || first == third) return first;
    return second == third ? second : min(min(first, second), third);
}

uint mode_of_row(int row, int column) {
    uint level = source_at(row, column) & LEVEL;
    if (column == 0 || column == columns - 1) return level;
    return mode(source_at(row, column - 1) & LEVEL, level, source_at(row, column + 1) & LEVEL);
}

void main() {
    int word = int(gl_GlobalInvocationID.x), y = workgroup_id().y;
    if (2 * word >= columns) return;
    uint made = 0u;
    [[unroll]] for (int i = 0; i < 2; ++i) {
        int column = min(2 * word + i, columns - 1);
        uint here = source_at(y, column);
        uint level = here & LEVEL;
        if (y > 0 && y < rows - 1) level = mode(mode_of_row(y - 1, column), mode_of_row(y, column), mode_of_row(y + 1, column));
        made |= (level | here & FLAT) << (16 * i);
    }
    target[workgroup_id().z * target_plane + y * target_pitch + word] = made;
}
