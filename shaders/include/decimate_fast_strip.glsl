// Decimates in the shape for CPUs: one thread processes a strip of DECIMATE_COLUMNS output columns from top to bottom, without
// barriers and without shared memory.
//
// Each input row is filtered horizontally in registers and added to the unfinished outputs (a transposed filter, which needs no
// ring of rows). If the window crosses the left or right border, each thread folds the mirrored taps once onto the samples
// that they read, so that the loop over rows needs no test. Vertically, the index of the row is mirrored.
// Constant 0: workgroup size.

layout(local_size_x_id = 0) in;

#include "decimate_fast.glsl"

const int SPAN = 2 * DECIMATE_COLUMNS + 7;
const int FOURS = DECIMATE_COLUMNS / 4;

// Returns tap k of an output whose centre is `room` samples before the last sample of its row. Samples beyond it are mirrored.
float folded_right(int k, int room) {
    int mirrored = 2 * room + 9 - k;
    return k - 4 > room ? 0.0 : mirrored <= 8 ? LOW_PASS[k] + LOW_PASS[mirrored] : LOW_PASS[k];
}

// Returns tap k of output column 0 or 1, whose centre has 2 * column samples before it.
float folded_left(int k, int column) {
    int mirrored = 7 - 4 * column - k;
    return k - 4 < -2 * column ? 0.0 : mirrored >= 0 ? LOW_PASS[k] + LOW_PASS[mirrored] : LOW_PASS[k];
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * DECIMATE_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, ((height + 1) >> 1) - top);
    int plane_start = workgroup_id().z * plane;
    int last = unit_of(width - 1);
    int out_index = workgroup_id().z * target_plane + top * target_pitch + column;

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

    vec4 open[FOURS][4];
    [[unroll]] for (int f = 0; f < FOURS; ++f) [[unroll]] for (int k = 0; k < 4; ++k) open[f][k] = vec4(0.0);

    for (int pair = -4; pair < rows; ++pair) {
        float across[2][DECIMATE_COLUMNS];
        [[unroll]] for (int odd = 0; odd < 2; ++odd) {
            int row = mirror(2 * (top + pair) + 4 + odd, height);
            float samples[SPAN];
            LOAD_SAMPLES(samples, SPAN, plane_start + row * pitch, last, 2 * column, -4)
            [[unroll]] for (int c = 0; c < DECIMATE_COLUMNS; ++c) {
                float total = taps[c][0] * samples[2 * c];
                [[unroll]] for (int k = 1; k < 9; ++k) total += taps[c][k] * samples[2 * c + k];
                across[odd][c] = total;
            }
        }
        [[unroll]] for (int f = 0; f < FOURS; ++f) {
            vec4 even = vec4(across[0][4 * f], across[0][4 * f + 1], across[0][4 * f + 2], across[0][4 * f + 3]);
            vec4 odd = vec4(across[1][4 * f], across[1][4 * f + 1], across[1][4 * f + 2], across[1][4 * f + 3]);
            vec4 done = add_rows(even, odd, open[f]);
            if (pair >= 0 && column + 4 * f < target_pitch) target[(out_index + pair * target_pitch) / 4 + f] = done;
        }
    }
}
