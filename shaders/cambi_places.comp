#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Computes what cambi_levels.comp and cambi_flat.comp do, on CPUs, in one kernel: reads and stores take most of their time. Of
// levels and flat places, only those are stored that the first scale has. It clears the histograms and the contrasts.
//
// A thread makes the eight samples of a block of the target and walks down a strip, with the equal samples of the last seven rows.
// Beyond the right and the lower edge are copies of the last samples, so that each sample there equals its neighbour.
// Constants: 0 workgroup size, 1 sample format, 7 whether the plane is scaled, 8 stride. y: strip. z: frame.

layout(local_size_x_id = 0) in;
layout(constant_id = 7) const uint SCALED = 0;
layout(constant_id = 8) const uint STRIDE = 1;  // 2: of every second row every second sample
layout(push_constant) uniform Push {
    int height;  // of the distorted plane
    int pitch;
    int plane;
    int target_pitch;  // words
    int target_plane;
    int strip;    // rows of the target
    int columns;  // at the size of the encoding
    int rows;
    int bits;
    int sample_shift;  // the bits by which samples lie higher in their type
    int dither;        // 1: take means
    int needed;        // equal samples of a window that a flat place has more of
    int cleared;       // words of a frame's histograms
    int frame_values;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "format.glsl"
#include "store.glsl"
#include "blocks.glsl"
#include "cambi.glsl"

layout(set = 0, binding = 1) uniform usamplerBuffer nearest;  // of each column, then of each row
layout(std430, set = 0, binding = 2) writeonly restrict buffer Target { uvec4 target[]; };
layout(std430, set = 0, binding = 3) writeonly restrict buffer Histograms { uvec4 histograms[]; };
layout(std430, set = 0, binding = 4) writeonly restrict buffer Values { vec4 values[]; };

const int STEP = int(STRIDE);
const int REACH = 3;
const int SIDE = 2 * REACH + 1;
const int MOST_EQUALS = 2 * (BLOCK - 1) + SIDE;  // columns of all windows of a thread, with a stride of 2
const int MOST_SUMS = MOST_EQUALS + 1;           // with the neighbour of the last one
const int WORDS = MOST_EQUALS / SIDE;            // that have the equal samples of a row, four bits each
const int TURNS = (SIDE + STEP - 1) / STEP;      // that see the first window
const int PENDING = REACH / STEP;                // turns until a sample's window is complete

int nearest_to(int place) {
    return int(texelFetch(nearest, place >> 2)[place & 3]);
}

// Returns the words of a row of samples from the fourth one before a column on, which is a multiple of 8.
uint[12] words_from(int first, int column) {
    int block = column / (FORMAT == UINT8 ? 16 : 8);
    uvec4 around[4];
    [[unroll]] for (int i = 0; i < 4; ++i) around[i] = block_at(first + clamp(block + i - 1, 0, pitch - 1));
    uint words[12];
    bool second = FORMAT == UINT8 && (column & 8) != 0;
    [[unroll]] for (int i = 0; i < 12; ++i) {
        int place = i + (FORMAT == UINT8 ? 3 : 2), later = min(place + 2, 15);
        words[i] = second ? around[later >> 2][later & 3] : around[place >> 2][place & 3];
    }
    return words;
}

// Returns sums of two samples, of which a level is a half, or of which four levels are the mean of those in two rows.
uint[MOST_SUMS] sums_of(int row, int column) {
    int first = (2 * workgroup_id().z + 1) * plane, y = clamp(row, 0, rows - 1);
    uint values[MOST_SUMS + 1];
    if (SCALED != 0) {
        first += nearest_to(columns + y) * pitch;
        [[unroll]] for (int i = 0; i <= MOST_SUMS; ++i) {
            int x = nearest_to(clamp(column + i - REACH, 0, columns - 1));
            uvec4 block = block_at(first + x / (FORMAT == UINT8 ? 16 : 8));
            values[i] = FORMAT == UINT8 ? bitfieldExtract(block[x >> 2 & 3], 8 * (x & 3), 8) : sample_of(block[x >> 1 & 3], x);
        }
    } else {
        uint words[12] = words_from(first + y * pitch, column);
        [[unroll]] for (int i = 0; i <= MOST_SUMS; ++i) {
            int near = i + 1;
            values[i] = FORMAT == UINT8 ? bitfieldExtract(words[near >> 2], 8 * (near & 3), 8) : sample_of(words[near >> 1], near);
        }
    }
    int more = max(10 - bits, 0), less = max(bits - 10, 0);
    uint half_of = (1u << less) >> 1;
    [[unroll]] for (int i = 0; i <= MOST_SUMS; ++i) {
        if (FORMAT != UINT8) values[i] = ((values[i] >> sample_shift << more) + half_of) >> less;
        if (i > 0) values[i] = column + i - REACH < columns ? values[i] : values[i - 1];
    }
    uint sums[MOST_SUMS];
    [[unroll]] for (int i = 0; i < MOST_SUMS; ++i) sums[i] = values[i] + (dither != 0 ? values[i + 1] : values[i]);
    return sums;
}

uint[MOST_SUMS] levels_of(uint here[MOST_SUMS], uint below[MOST_SUMS]) {
    uint levels[MOST_SUMS];
    [[unroll]] for (int i = 0; i < MOST_SUMS; ++i) {
        levels[i] = here[i] + (dither != 0 ? below[i] : here[i]);
        if (FORMAT != UINT8) levels[i] >>= 2;  // of 8 bits, four samples have 10 bits
    }
    return levels;
}

void main() {
    int block = int(gl_GlobalInvocationID.x), column = STEP * BLOCK * block, z = workgroup_id().z;
    int target_rows = (rows + STEP - 1) / STEP, strips = (target_rows + strip - 1) / strip;
    int thread = workgroup_id().y * int(gl_NumWorkGroups.x * gl_WorkGroupSize.x) + block;
    int threads = strips * int(gl_NumWorkGroups.x * gl_WorkGroupSize.x);
    for (int i = thread; i < cleared / 4; i += threads) histograms[z * cleared / 4 + i] = uvec4(0u);
    for (int i = thread; i < frame_values / 4; i += threads) values[z * frame_values / 4 + i] = vec4(0.0);

    if (column >= columns) return;
    int top = workgroup_id().y * strip, bottom = min(top + strip, target_rows);
    uint within[WORDS], counts[WORDS], rows_of_equals[SIDE][WORDS];
    [[unroll]] for (int word = 0; word < WORDS; ++word) {
        within[word] = counts[word] = 0u;
        [[unroll]] for (int i = 0; i < SIDE; ++i) {
            int x = column + SIDE * word + i - REACH;
            within[word] |= x >= 0 && x < columns ? 1u << (4 * i) : 0u;
            rows_of_equals[i][word] = 0u;
        }
    }
    uvec4 pending[REACH + 1];
    [[unroll]] for (int i = 0; i <= REACH; ++i) pending[i] = uvec4(0u);

    int row = STEP * top + REACH + 1 - STEP * TURNS;
    uint sums[MOST_SUMS] = sums_of(row + 1, column), levels[MOST_SUMS] = levels_of(sums_of(row, column), sums);
    for (int y = top + 1 - TURNS; y < bottom; ++y) {
        [[unroll]] for (int i = 0; i < REACH; ++i) pending[i] = pending[i + 1];
        [[unroll]] for (int i = 0; i < 4; ++i) {
            int place = REACH + 2 * STEP * i;
            pending[PENDING][i] = levels[place] | levels[place + STEP] << 16;
        }
        [[unroll]] for (int step = 0; step < STEP; ++step) {
            uint next_sums[MOST_SUMS] = sums_of(row + 2, column), below[MOST_SUMS] = levels_of(sums, next_sums);
            uint found[WORDS];
            [[unroll]] for (int word = 0; word < WORDS; ++word) {
                found[word] = 0u;
                [[unroll]] for (int i = 0; i < SIDE; ++i) {
                    int place = SIDE * word + i;
                    bool equal = levels[place] == levels[place + 1] && levels[place] == below[place];
                    found[word] |= equal ? 1u << (4 * i) : 0u;
                }
                found[word] &= row >= 0 && row < rows ? within[word] : 0u;
                counts[word] += found[word] - rows_of_equals[0][word];
                [[unroll]] for (int i = 0; i < SIDE - 1; ++i) rows_of_equals[i][word] = rows_of_equals[i + 1][word];
                rows_of_equals[SIDE - 1][word] = found[word];
            }
            levels = below;
            sums = next_sums;
            ++row;
        }

        uint of_columns[MOST_EQUALS], of_window = 0u;
        [[unroll]] for (int i = 0; i < MOST_EQUALS; ++i) of_columns[i] = bitfieldExtract(counts[i / SIDE], 4 * (i % SIDE), 4);
        [[unroll]] for (int i = 0; i < SIDE - 1; ++i) of_window += of_columns[i];
        uvec4 words = pending[0];
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {
            of_window += of_columns[STEP * i + SIDE - 1];
            words[i >> 1] |= of_window > uint(needed) ? FLAT << (16 * (i & 1)) : 0u;
            of_window -= of_columns[STEP * i];
            if (STEP == 2 && i < BLOCK - 1) of_window += of_columns[2 * i + SIDE] - of_columns[2 * i + 1];
        }
        if (y >= top) target[computed((z * target_plane + y * target_pitch >> 2) + block)] = computed(words);
    }
}
