#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_vote : require
// Computes what cambi.comp does, on CPUs: the strongest contrast of each flat place of a scale with its window. It stores positive
// contrasts only, among zeros.
//
// Few places of a picture are flat, and a software driver runs all threads of a workgroup if one has work. So the threads list the
// flat places of a row, whose levels may count, and share them. The list is read three times: when the row enters the windows,
// to add the places to histograms of each column; when it is in the middle, to compare them with the counts of their windows; and
// when it leaves, to subtract them.
//
// A count is a byte, and 16 levels are a texel. Each level is in two texels, of which one begins with it or up to seven levels
// before, so that all levels around a place are in one. The histograms are 0 at first, and again when the last rows have left.
// The workgroup is one subgroup, so that a thread sees what all others store without a barrier, and texels are read from the
// memory to which words are written: both hold for software drivers, for which the strip shape is made.
// `table` has the brightest levels at which each contrast is visible, and the weights; there are at most CAMBI_LISTS_CONTRASTS.
// Constants: 0 workgroup size, 9 reach of the window, to either side. x: tile of columns. y: strip. z: frame.

#include "integer_constants.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 9) const uint WINDOW_REACH = 1;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;  // texels
    int tile;          // columns, a multiple of 8
    int strip;         // rows
    int first_strip;   // of the dispatch
    int first_value;   // of the scale, within a frame's contrasts
    int frame_values;
    int frame_columns;  // texels of a frame's histograms and lists
    int first_list;     // texel of a frame's lists
    int contrasts;     // d is 1 to this
    int darkest;       // visible level
    int lowest;        // level that may count
    int highest;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "store.glsl"
#include "cambi.glsl"

layout(set = 0, binding = 0) uniform usamplerBuffer blocks;
layout(set = 0, binding = 1) uniform usamplerBuffer table;
layout(set = 0, binding = 2) uniform usamplerBuffer histograms;  // (workgroups, groups of levels, columns), then the lists
layout(std430, set = 0, binding = 3) writeonly restrict buffer Values { float values[]; };
layout(std430, set = 0, binding = 4) buffer Counts { uint counts[]; };  // the same memory as `histograms`

const int CONTRASTS = CAMBI_LISTS_CONTRASTS;
const int AROUND = 2 * CONTRASTS + 1;  // levels whose counts a place needs
const int STEP = CAMBI_LISTS_LEVELS;    // levels from a texel to the next
const int WORDS = 4;                   // of a texel
const int REACH = int(WINDOW_REACH);
const int SIDE = 2 * REACH + 1;
const int AT_ONCE = 255 / SIDE;        // columns whose counts are added in bytes

int columns_of_tile() {
    return tile + 2 * (REACH + 15 & ~15);
}

// Lists the flat places of a row whose levels may count: a word has the column within the tile, and the level above the lowest.
// The word before them is their number.
void list_places(int row, int left, int list) {
    int lane = int(gl_LocalInvocationIndex), threads = int(gl_WorkGroupSize.x);
    int turns = (columns_of_tile() / BLOCK + threads - 1) / threads, number = 0;
    bool exists = row >= 0 && row < height;
    int first = (workgroup_id().z * height + clamp(row, 0, height - 1)) * pitch;
    for (int turn = exists ? 0 : turns; turn < turns;) {
        int block;
        uvec4 words;
        bool any_flat;
        do {  // the rest of a turn takes longer, and lavapipe does not branch around it
            block = turn * threads + lane;
            int x = left + BLOCK * block;
            bool within = x >= 0 && x < width && BLOCK * block < columns_of_tile();
            words = texelFetch(blocks, first + clamp(x >> 3, 0, pitch - 1));
            any_flat = within && ((words.x | words.y | words.z | words.w) & (FLAT | FLAT << 16)) != 0u;
            ++turn;
        } while (turn < turns && !subgroupAny(any_flat));

        int of_thread = 0, levels[BLOCK];
        bool listed[BLOCK];
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {
            uint found = sample_of(words[i >> 1], i);
            levels[i] = int(found & LEVEL) - lowest;
            listed[i] = any_flat && (found & FLAT) != 0u && uint(levels[i]) <= uint(highest - lowest);
            listed[i] = listed[i] && left + BLOCK * block + i < width;
            of_thread += int(listed[i]);
        }
        int place = list + 1 + number + subgroupExclusiveAdd(of_thread);
        [[unroll]] for (int i = 0; i < BLOCK; ++i) {
            uint word = uint(BLOCK * block + i | levels[i] << 16);
            if (listed[i]) counts[computed(place)] = computed(word);
            place += int(listed[i]);
        }
        number += subgroupAdd(of_thread);
    }
    if (lane == 0) counts[list] = uint(number);
}

uint word_at(int place) {
    return texelFetch(histograms, place >> 2)[place & 3];
}

// Adds `change` to the counts of all places of a list.
void count_places(int first, int list, uint change) {
    int columns = columns_of_tile(), end = list + 1 + int(word_at(list));
    for (int i = list + 1 + int(gl_LocalInvocationIndex); i < end; i += int(gl_WorkGroupSize.x)) {
        uint place = word_at(i);
        int level = int(place >> 16) + STEP, word = level >> 2 & 1;
        int later = first + level / STEP * columns + int(place & 0xffffu), earlier = later - columns;
        uint of_later = texelFetch(histograms, later)[word], of_earlier = texelFetch(histograms, earlier)[2 + word];
        uint added = change << (8 * (level & 3));
        counts[computed(4 * later + word)] = computed(of_later + added);
        counts[computed(4 * earlier + 2 + word)] = computed(of_earlier + added);
    }
}

// Stores the strongest contrasts of a list.
void compare_places(int first, int list, int margin, int first_place) {
    int columns = columns_of_tile(), end = list + 1 + int(word_at(list));
    ivec4 limits = ivec4(texelFetch(table, 0)), weights = ivec4(texelFetch(table, CAMBI_CONTRASTS / 4));
    for (int i = list + 1 + int(gl_LocalInvocationIndex); i < end; i += int(gl_WorkGroupSize.x)) {
        uint place = word_at(i);
        int column = int(place & 0xffffu), level = int(place >> 16) + lowest;
        bool compared = column >= margin && column < margin + tile;
        int lowest_around = level - lowest + STEP - CONTRASTS, room = lowest_around & STEP - 1;
        int texel = first + lowest_around / STEP * columns + clamp(column - REACH, 0, columns - SIDE);
        uint even[WORDS], odd[WORDS], sums[WORDS];  // even and odd: two counts each
        [[unroll]] for (int word = 0; word < WORDS; ++word) even[word] = odd[word] = sums[word] = 0u;
        [[unroll]] for (int step = 0; step < SIDE; ++step) {
            uvec4 found = texelFetch(histograms, texel + step);
            [[unroll]] for (int word = 0; word < WORDS; ++word) {
                sums[word] += found[word];
                if (step % AT_ONCE == AT_ONCE - 1 || step == SIDE - 1) {
                    even[word] += sums[word] & 0x00ff00ffu;
                    odd[word] += sums[word] >> 8 & 0x00ff00ffu;
                    sums[word] = 0u;
                }
            }
        }

        int around[4 * WORDS];
        [[unroll]] for (int i = 0; i < 4 * WORDS; ++i) {
            around[i] = int(bitfieldExtract((i & 1) != 0 ? odd[i >> 2] : even[i >> 2], 8 * (i & 2), 16));
        }
        [[unroll]] for (int stage = 0; stage < 3; ++stage) {
            int distance = 4 >> stage;
            bool far = (room & distance) != 0;
            [[unroll]] for (int i = 0; i < 4 * WORDS - distance; ++i) around[i] = far ? around[i + distance] : around[i];
        }

        float strongest = 0.0;
        int own = max(around[CONTRASTS], 1);
        [[unroll]] for (int d = 1; d <= CONTRASTS; ++d) {
            bool visible = d <= contrasts && level <= limits[d - 1] && level + contrasts + d > darkest;
            int other = max(around[CONTRASTS + d], around[CONTRASTS - d]);
            precise float reciprocal = 1.0 / float(own + other);
            precise float contrast = float(weights[d - 1] * own * other) * reciprocal;
            if (visible) strongest = max(strongest, contrast);
        }
        if (compared && strongest > 0.0) values[computed(first_place + column)] = strongest;
    }
}

void main() {
    int columns = columns_of_tile(), margin = (columns - tile) / 2, left = int(gl_WorkGroupID.x) * tile - margin;
    int top = (first_strip + workgroup_id().y) * strip, bottom = min(top + strip, height);
    int groups = (highest - lowest + STEP) / STEP + 1, words_of_list = columns + 4;
    int group = workgroup_id().y * int(gl_NumWorkGroups.x) + int(gl_WorkGroupID.x);
    int first = workgroup_id().z * frame_columns + group * groups * columns;
    int lists = 4 * (workgroup_id().z * frame_columns + first_list) + group * SIDE * words_of_list;

    int last = bottom + REACH - 1;  // row of the windows
    for (int row = top - REACH; row <= last + SIDE; ++row) {
        int list = lists + (row - top + REACH) % SIDE * words_of_list;
        memoryBarrierBuffer();
        if (row - SIDE >= top - REACH) count_places(first, list, 0xffffffffu);
        memoryBarrierBuffer();
        list_places(row <= last ? row : -1, left, list);
        memoryBarrierBuffer();
        count_places(first, list, 1u);
        memoryBarrierBuffer();
        int y = row - REACH, value_place = workgroup_id().z * frame_values + first_value + y * width + left;
        int own_list = lists + (row - top) % SIDE * words_of_list;
        if (y >= top && y < bottom) compare_places(first, own_list, margin, value_place);
    }
}
