#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// The next scale of the pyramid: 9-tap low-pass in both directions, then every second sample.
//
//   out(x, y) = sum over i, j in -4..4 of t(i) t(j) in(2x + i, 2y + j),   out is ceil(w/2) x ceil(h/2)
//
// Border: symmetric (-1 reads 0, n reads n-1). Across, the mirrored taps are folded onto the samples they read, once a thread,
// so that the walk down needs no test; down, the row's index is mirrored.
// Threads: one walks down a strip of DECIMATE_COLUMNS output columns and `strip` rows, filters each input row across in registers and
// adds it to the outputs still open (a transposed filter: no ring of rows). No barrier, no shared memory.
// z: plane, reference and distorted of each frame in turn.
// Constants: 0 workgroup size, 1 sample format.

#include "constants.glsl"

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
layout(push_constant) uniform Push {
    int width;         // of the input, samples
    int height;
    int pitch;         // from row to row, in the units of samples.glsl
    int plane;         // from plane to plane, in the same unit
    int target_pitch;  // the same in floats; rows are written to their whole pitch, so that no reader meets a stray NaN
    int target_plane;
    int strip;         // output rows of a strip
    float scale;       // of UINT16 samples
};

#include "samples.glsl"

const int SPAN = 2 * DECIMATE_COLUMNS + 7;

// Tap k of an output whose centre is `room` samples before the last of its row: what lies beyond is read mirrored.
float folded_right(int k, int room) {
    int mirrored = 2 * room + 9 - k;
    return k - 4 > room ? 0.0 : mirrored <= 8 ? LOW_PASS[k] + LOW_PASS[mirrored] : LOW_PASS[k];
}

// Tap k of output column 0 or 1, whose centre has 2 * column samples before it.
float folded_left(int k, int column) {
    int mirrored = 7 - 4 * column - k;
    return k - 4 < -2 * column ? 0.0 : mirrored >= 0 ? LOW_PASS[k] + LOW_PASS[mirrored] : LOW_PASS[k];
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * DECIMATE_COLUMNS;
    int target_height = (height + 1) >> 1;
    int top = int(gl_WorkGroupID.y) * strip;
    int rows = min(strip, target_height - top);
    int plane_start = int(gl_WorkGroupID.z) * plane;

    float taps[DECIMATE_COLUMNS][9];
    [[unroll]] for (int c = 0; c < DECIMATE_COLUMNS; ++c) {
        int room = width - 1 - 2 * (column + c);
        [[unroll]] for (int k = 0; k < 9; ++k) {
            float tap = LOW_PASS[k];
            if (c < 2) tap = column == 0 ? folded_left(k, c) : tap;
            [[unroll]] for (int r = 0; r < 4; ++r) tap = room == r ? folded_right(k, r) : tap;
            taps[c][k] = tap;
        }
    }

    float open[4][DECIMATE_COLUMNS];
    [[unroll]] for (int k = 0; k < 4; ++k) [[unroll]] for (int c = 0; c < DECIMATE_COLUMNS; ++c) open[k][c] = 0.0;
    int last = unit_of(width - 1);
    int out_index = int(gl_WorkGroupID.z) * target_plane + top * target_pitch + column;

    for (int pair = -4; pair < rows; ++pair) {
        float across[2][DECIMATE_COLUMNS];
        [[unroll]] for (int odd = 0; odd < 2; ++odd) {
            int row = 2 * (top + pair) + 4 + odd;
            row = row < 0 ? -1 - row : row;
            row = row >= height ? 2 * height - 1 - row : row;
            float samples[SPAN];
            LOAD_SAMPLES(samples, SPAN, plane_start + row * pitch, last, 2 * column, -4)
            [[unroll]] for (int c = 0; c < DECIMATE_COLUMNS; ++c) {
                float total = taps[c][0] * samples[2 * c];
                [[unroll]] for (int k = 1; k < 9; ++k) total += taps[c][k] * samples[2 * c + k];
                across[odd][c] = total;
            }
        }
        [[unroll]] for (int c = 0; c < DECIMATE_COLUMNS; ++c) {
            float even = across[0][c], odd = across[1][c];
            float done = open[0][c] + LOW_PASS[8] * even;
            open[0][c] = open[1][c] + LOW_PASS[6] * even + LOW_PASS[7] * odd;
            open[1][c] = open[2][c] + LOW_PASS[4] * even + LOW_PASS[5] * odd;
            open[2][c] = open[3][c] + LOW_PASS[2] * even + LOW_PASS[3] * odd;
            open[3][c] = LOW_PASS[0] * even + LOW_PASS[1] * odd;
            if (pair >= 0 && column + c < target_pitch) target[out_index + pair * target_pitch + c] = done;
        }
    }
}
