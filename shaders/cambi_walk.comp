#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_vote : require
// Computes what cambi.comp does, on CPUs: the strongest contrast of each flat place of a scale with its window.
//
// A software driver stores lane by lane and adds in vectors. So a workgroup keeps a histogram of each column of its windows, of
// the rows of the window, in memory: a count is a byte, and 16 levels are a texel. A thread adds the row that enters and
// subtracts the one that leaves. Then it walks along its part of the row with the counts of the window for 32 levels, in
// registers: a step adds a column and subtracts one. If a place has no room for its contrasts within those levels, the counts are
// made anew from all columns of its window.
//
// lavapipe ends all loops of a thread after 65,535 turns of all of them together. So a strip is done in parts, one dispatch after
// the other; the histograms stay from part to part. They are 0 at first, and again when the last rows have left.
// The workgroup is one subgroup, so that a thread sees the counts of all others without a barrier, and texels are read from the
// memory to which words are written: both hold for software drivers, for which the strip shape is made.
// `table` has the brightest levels at which each contrast is visible, and the weights; there are at most CAMBI_WALK_CONTRASTS.
// Constants: 0 workgroup size. y: strip. z: frame.

#include "integer_constants.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;  // texels
    int plane;
    int strip;
    int reach;         // of the window, to either side
    int first_value;   // of the scale, within a frame's contrasts
    int frame_values;
    int frame_columns;  // texels of a frame's histograms
    int contrasts;     // d is 1 to this
    int darkest;       // visible level
    int first_row;     // of each strip's part
    int rows;          // of the part
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "store.glsl"
#include "cambi.glsl"

layout(set = 0, binding = 0) uniform usamplerBuffer blocks;
layout(set = 0, binding = 1) uniform usamplerBuffer table;
layout(set = 0, binding = 2) uniform usamplerBuffer histograms;  // (groups of 16 levels, columns)
layout(std430, set = 0, binding = 3) writeonly restrict buffer Values { float values[]; };
layout(std430, set = 0, binding = 4) buffer Counts { uint counts[]; };  // the same memory as `histograms`

const int CONTRASTS = CAMBI_WALK_CONTRASTS;
const int AROUND = 2 * CONTRASTS + 1;  // levels whose counts a place needs
const int GROUP = 16;                  // levels of a texel
const int GROUPS = CAMBI_WALK_GROUPS;
const int WORDS = 8;                   // of two groups
const int OFFSET = 8;                  // of levels in the histograms, so that all contrasts have a level there
const int NONE = 1 << 16;

// Returns the level in the histograms of a flat place, or a larger number.
int flat_level(int row, int column) {
    int y = clamp(row, 0, height - 1), x = clamp(column, 0, width - 1);
    uvec4 block = texelFetch(blocks, workgroup_id().z * plane + y * pitch + (x >> 3));
    uint found = sample_of(block[column >> 1 & 3], column);
    bool within = row >= 0 && row < height && column >= 0 && column < width && (found & FLAT) != 0u;
    return within ? int(found & LEVEL) + OFFSET : NONE;
}

// Returns whether a row has a flat place in the part of it along which this thread walks, if that begins at a column.
bool has_flat_place(int row, int column) {
    uint found = 0u;
    [[unroll]] for (int i = 0; i < CAMBI_WALK_COLUMNS / BLOCK; ++i) {
        int block = min((column >> 3) + i, pitch - 1);
        uvec4 words = texelFetch(blocks, workgroup_id().z * plane + row * pitch + block);
        found |= words.x | words.y | words.z | words.w;
    }
    return (found & (FLAT | FLAT << 16)) != 0u;
}

// Adds `change` to the count of a level.
void change_count(int first, int columns, int column, int level, int change) {
    if (level == NONE) return;
    int texel = first + (level / GROUP) * columns + column;
    uint word = texelFetch(histograms, texel)[level >> 2 & 3];
    counts[computed(4 * texel + (level >> 2 & 3))] = computed(word + uint(change << (8 * (level & 3))));
}

void main() {
    int lane = int(gl_LocalInvocationIndex), threads = int(gl_WorkGroupSize.x);
    int tile = CAMBI_WALK_COLUMNS * threads, margin = (reach + 8) & ~7, columns = tile + 2 * margin;
    int left = int(gl_WorkGroupID.x) * tile, top = workgroup_id().y * strip, bottom = min(top + strip, height);
    int group = workgroup_id().y * int(gl_NumWorkGroups.x) + int(gl_WorkGroupID.x);
    int first = workgroup_id().z * frame_columns + group * GROUPS * columns;
    ivec4 limits = ivec4(texelFetch(table, 0)), weights = ivec4(texelFetch(table, CAMBI_CONTRASTS / 4));
    int brightest = limits[contrasts - 1] + OFFSET;

    int begin_row = first_row == 0 ? top - reach : min(top + first_row, bottom) + reach;
    int end_row = min(top + first_row + rows, bottom) + reach;
    if (first_row + rows >= strip) end_row = bottom + 3 * reach + 1;  // until all rows have left
    for (int row = begin_row; row < end_row; ++row) {
        int y = row - reach, leaving = y - reach - 1;
        memoryBarrierBuffer();
        for (int column = lane; column < columns; column += threads) {
            int x = left - margin + column;
            int old = leaving >= top - reach ? flat_level(leaving, x) : NONE;
            int new = row < bottom + reach ? flat_level(row, x) : NONE;
            if (old == new) continue;
            change_count(first, columns, column, old, -1);
            change_count(first, columns, column, new, 1);
        }
        memoryBarrierBuffer();
        if (y < top || y >= bottom) continue;

        int left_column = left + lane * CAMBI_WALK_COLUMNS, value_place = workgroup_id().z * frame_values + first_value + y * width;
        bool walks = subgroupAny(has_flat_place(y, left_column));
        for (int i = walks ? CAMBI_WALK_COLUMNS : 0; i < CAMBI_WALK_COLUMNS; ++i) {
            if (left_column + i < width) values[computed(value_place + left_column + i)] = 0.0;
        }

        int begin = -1;  // the first group of the window's counts
        uint even[WORDS], odd[WORDS];  // two counts each, of levels 4 i, 4 i + 2 and 4 i + 1, 4 i + 3
        [[unroll]] for (int i = 0; i < WORDS; ++i) even[i] = odd[i] = 0u;
        for (int i = walks ? 0 : CAMBI_WALK_COLUMNS; i < CAMBI_WALK_COLUMNS; ++i) {
            int column = margin + lane * CAMBI_WALK_COLUMNS + i, x = left_column + i;
            int level = flat_level(y, x);
            bool counted = level <= brightest;
            int room = level - CONTRASTS - begin * GROUP;
            bool anew = counted && (begin < 0 || uint(room) > uint(2 * GROUP - AROUND));
            if (anew) begin = (level - OFFSET) / GROUP;
            room = level - CONTRASTS - begin * GROUP;
            [[unroll]] for (int word = 0; word < WORDS; ++word) {
                even[word] = anew ? 0u : even[word];
                odd[word] = anew ? 0u : odd[word];
            }
            int steps = anew ? 2 * reach + 1 : 1, texel = first + max(begin, 0) * columns + column;
            for (int step = anew ? 0 : -1; step < steps; ++step) {
                int here = texel + (step < 0 ? -reach - 1 : anew ? step - reach : reach);
                uint sign = step < 0 ? 0xffffffffu : 0u;
                [[unroll]] for (int part = 0; part < 2; ++part) {
                    uvec4 found = texelFetch(histograms, here + part * columns);
                    [[unroll]] for (int word = 0; word < 4; ++word) {
                        even[4 * part + word] += ((found[word] & 0x00ff00ffu) ^ sign) - sign;
                        odd[4 * part + word] += ((found[word] >> 8 & 0x00ff00ffu) ^ sign) - sign;
                    }
                }
            }

            // The words that have the counts of the levels around the place, and the one after them.
            uint near_even[WORDS] = even, near_odd[WORDS] = odd;
            [[unroll]] for (int stage = 0; stage < 3; ++stage) {
                int distance = 4 >> stage;
                bool far = (room >> 2 & distance) != 0;
                [[unroll]] for (int word = 0; word < WORDS; ++word) {
                    if (word + distance >= WORDS) continue;
                    near_even[word] = far ? near_even[word + distance] : near_even[word];
                    near_odd[word] = far ? near_odd[word + distance] : near_odd[word];
                }
            }
            int around[AROUND + 3];
            [[unroll]] for (int level = 0; level < AROUND + 3; ++level) {
                uint word = (level & 1) != 0 ? near_odd[level >> 2] : near_even[level >> 2];
                around[level] = int(bitfieldExtract(word, 8 * (level & 2), 16));
            }
            [[unroll]] for (int stage = 0; stage < 2; ++stage) {
                int distance = 2 >> stage;
                bool far = (room & distance) != 0;
                [[unroll]] for (int level = 0; level < AROUND + 3; ++level) {
                    if (level + distance >= AROUND + 3) continue;
                    around[level] = far ? around[level + distance] : around[level];
                }
            }

            float strongest = 0.0;
            int own = max(around[CONTRASTS], 1);
            [[unroll]] for (int d = 1; d <= CONTRASTS; ++d) {
                bool visible = d <= contrasts && level - OFFSET <= limits[d - 1] && level - OFFSET + contrasts + d > darkest;
                int other = max(around[CONTRASTS + d], around[CONTRASTS - d]);
                precise float reciprocal = 1.0 / float(own + other);
                precise float contrast = float(weights[d - 1] * own * other) * reciprocal;
                if (visible) strongest = max(strongest, contrast);
            }
            int place = computed(value_place + x);
            if (x < width) values[place] = counted ? strongest : 0.0;
        }
    }
}
