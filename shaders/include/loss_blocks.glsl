// Reads floats of a row in blocks of four through texel buffers, which is the fastest way on a CPU (see
// samples_blocks.glsl). Rows begin on a block.

const int SPAN = 24;  // columns that a thread reads for its eight columns: eight more on each side, in whole blocks

vec4 block_of(usamplerBuffer planes, int row, int block) {
    return uintBitsToFloat(texelFetch(planes, row + block));
}

// Fills `target` with the SPAN floats from `column - 8` of the row that begins at block `row`. Positions outside the row read
// some float of the row. `last` is the row's last block, and `column` is a multiple of 8.
#define LOAD_SPAN(target, planes, row, last, column)                                                  \
    [[unroll]] for (int b_ = 0; b_ < SPAN / 4; ++b_) {                                                \
        vec4 block_ = block_of(planes, row, clamp(((column) >> 2) - 2 + b_, 0, last));                \
        [[unroll]] for (int j_ = 0; j_ < 4; ++j_) target[4 * b_ + j_] = block_[j_];                   \
    }

// Passes one row through a separable filter: it is filtered horizontally in registers, then added to the unfinished outputs (a
// transposed filter). `done` receives the eight outputs that the row completes. `row` has SPAN columns, and the centres of the
// outputs are its columns 8 to 15.
#define ADD_ROW(done, open, row)                                                                                     \
    [[unroll]] for (int c_ = 0; c_ < STRIP_COLUMNS; ++c_) {                                                          \
        float across_ = WINDOW[0] * (row[c_ + 3] + row[c_ + 13]);                                                    \
        [[unroll]] for (int k_ = 1; k_ < 5; ++k_) across_ += WINDOW[k_] * (row[c_ + 3 + k_] + row[c_ + 13 - k_]);    \
        across_ += WINDOW[5] * row[c_ + 8];                                                                          \
        done[c_] = open[0][c_] + WINDOW[10] * across_;                                                               \
        [[unroll]] for (int k_ = 0; k_ < 9; ++k_) open[k_][c_] = open[k_ + 1][c_] + WINDOW[9 - k_] * across_;        \
        open[9][c_] = WINDOW[0] * across_;                                                                           \
    }

// Computes the pivot of a whole plane, from samples in five rows and five columns.
vec2 plane_pivot(int plane_start) {
    vec2 candidates[5];
    [[unroll]] for (int k = 0; k < 5; ++k) {
        int at = plane_start + (2 * k + 1) * height / 10 * pitch + (((4 * k + 1) % 10) * width / 10 >> 2);
        candidates[k] = pivot_candidate(block_of(distorted, at, 0).x, block_of(reference, at, 0).x);
    }
    return pivot_of(candidates);
}
