// Decimates with libvmaf's rounding: libvmaf's 9x9 table, each product rounded to float32, the products added without loss, the sum
// rounded to float32. It is for CPUs and for GPUs.
//
// Each product is split into a multiple of 2^-13 and a rest. Sums of the multiples are exact, and sums of the rests lose less than
// 2^-30, so the order of the additions does not matter. The table is symmetric. So a row is filtered horizontally once per
// distance from the centre, and its sums serve the outputs above it and below it.
//
// As in decimate_fast_strip.glsl, a thread processes a strip of OUTPUTS output columns from top to bottom, and adds each pair of
// rows to the unfinished outputs. Constant 0, in the shape for CPUs: workgroup size.

#ifdef STAGED
layout(local_size_x = DECIMATE_WORKGROUP) in;
const int OUTPUTS = EXACT_OUTPUTS;
#else
layout(local_size_x_id = 0) in;
const int OUTPUTS = DECIMATE_COLUMNS;
#endif

const int SPAN = 2 * OUTPUTS + 7;

// A float near this number is a multiple of 2^-13. Products are below 512, because samples on the 0..255 scale are below 372 on
// every scale of the pyramid. Larger products, of floats beyond their range, are added with the precision of float32.
const float SPLITTER = 1536.0;

#include "rounding.glsl"

struct SplitSum {
    float multiple;
    float rest;
};

SplitSum split_product(float a, float b) {
    float term = rounded_product(a, b);
    precise float shifted = term + hidden(SPLITTER);
    precise float multiple = shifted - SPLITTER;
    precise float rest = term - multiple;
    return SplitSum(multiple, rest);
}

SplitSum plus(SplitSum a, SplitSum b) {
    precise float multiple = a.multiple + b.multiple;
    precise float rest = a.rest + b.rest;
    return SplitSum(multiple, rest);
}

// Returns the sum that a row adds to output c, if the row lies `distance` rows from the centre of the output.
SplitSum row_sum(const float samples[SPAN], int c, int distance) {
    SplitSum sum = split_product(LOW_PASS_TABLE[4 - distance][0], samples[2 * c]);
    [[unroll]] for (int k = 1; k < 9; ++k)
        sum = plus(sum, split_product(LOW_PASS_TABLE[4 - distance][k], samples[2 * c + k]));
    return sum;
}

void main() {
    int column = int(gl_GlobalInvocationID.x) * OUTPUTS;
    if (column >= target_pitch) return;
    int top = workgroup_id().y * strip;
    int rows = min(strip, ((height + 1) >> 1) - top);
    int plane_start = workgroup_id().z * plane;
    int last = unit_of(width - 1);
    int end = width - (2 * column - 4);  // index of the first loaded sample past the end of the row
    int out_index = workgroup_id().z * target_plane + top * target_pitch + column;

    SplitSum open[4][OUTPUTS];
    [[unroll]] for (int k = 0; k < 4; ++k)
        [[unroll]] for (int c = 0; c < OUTPUTS; ++c) open[k][c] = SplitSum(0.0, 0.0);

    for (int pair = -4; pair < rows; ++pair) {
        float samples[2][SPAN];
        [[unroll]] for (int odd = 0; odd < 2; ++odd) {
            int row = mirror(2 * (top + pair) + 4 + odd, height);
            float loaded[SPAN];
            LOAD_SAMPLES(loaded, SPAN, plane_start + row * pitch, last, 2 * column, -4)
            // No output reads more than four samples past a border. The n-th sample past it equals the n-th before it.
            [[unroll]] for (int i = 0; i < SPAN; ++i) {
                samples[odd][i] = loaded[i];
                if (i < 4) samples[odd][i] = mix(samples[odd][i], loaded[7 - i], column == 0);
                [[unroll]] for (int past = 0; past < 4; ++past) {
                    int mirrored = i - 1 - 2 * past;
                    if (mirrored >= 0) samples[odd][i] = mix(samples[odd][i], loaded[mirrored], i == end + past);
                }
            }
        }
        STORED stored;  // Mesa 22.3 writes lane by lane, so several outputs are written at a time
        [[unroll]] for (int c = 0; c < OUTPUTS; ++c) {
            SplitSum even0 = row_sum(samples[0], c, 0), even2 = row_sum(samples[0], c, 2), even4 = row_sum(samples[0], c, 4);
            SplitSum odd1 = row_sum(samples[1], c, 1), odd3 = row_sum(samples[1], c, 3);
            SplitSum done = plus(open[0][c], even4);
            open[0][c] = plus(open[1][c], plus(even2, odd3));
            open[1][c] = plus(open[2][c], plus(even0, odd1));
            open[2][c] = plus(open[3][c], plus(even2, odd1));
            open[3][c] = plus(even4, odd3);
            precise float total = done.multiple + done.rest;
            int place = c % stored.length();
            stored[place] = mix(0.0, total, column + c < (width + 1) >> 1);
            if (place == stored.length() - 1 && pair >= 0 && column + c < target_pitch)
                target[(out_index + pair * target_pitch + c) / stored.length()] = stored;
        }
    }
}
