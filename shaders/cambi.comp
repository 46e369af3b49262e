#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Computes the strongest contrast of each flat place of a scale of cambi with its window.
//
//   contrast(d) = weight(d) p0 p1 / (p0 + p1)    p0 flat places of the window have the level of the place, p1 that of d more, or
//                                                of d less, whichever are more
//
// A thread has a column and walks down a strip. Shared memory has a histogram of each column of the windows, of the rows of the
// window: a count is a byte, four columns share a word, and a thread adds the row that enters and subtracts the one that leaves.
// A count of the window is the sum of those of its columns. Memory has room for some levels, so the strip is walked once per
// band of levels that places of its columns have.
// `table` has the brightest levels at which each contrast is visible, the weights, and 1 / n rounded to float32.
// The workgroup size is fixed, and there are no constants. y: strip. z: frame. For CPUs, cambi_lists.comp does the same if d is at
// most CAMBI_LISTS_CONTRASTS.

#include "integer_constants.glsl"

const int THREADS = CAMBI_WORKGROUP;
const int MEMORY = CAMBI_STAGED_WORDS;
const int MOST_WORDS = (2 * CAMBI_REACH + 3) / 4;  // of a window, before the last one
layout(local_size_x = CAMBI_WORKGROUP) in;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;  // words
    int plane;
    int strip;
    int reach;         // of the window, to either side
    int first_value;   // of the scale, within a frame's contrasts
    int frame_values;
    int contrasts;     // d is 1 to this
    int darkest;       // visible level
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "cambi.glsl"

layout(std430, set = 0, binding = 0) readonly restrict buffer Plane { uint words[]; };
layout(std430, set = 0, binding = 1) readonly restrict buffer Table { uint table[]; };
layout(std430, set = 0, binding = 2) writeonly restrict buffer Values { float values[]; };

const int WEIGHTS = CAMBI_CONTRASTS;
const int RECIPROCALS = 2 * CAMBI_CONTRASTS;

shared uint histograms[MEMORY];  // (levels, words)
shared uint bands;

// Returns the level of a flat place, or a larger number.
int flat_level(int row, int column) {
    uint found = sample_of(words[workgroup_id().z * plane + row * pitch + (column >> 1)], column);
    return (found & FLAT) != 0u ? int(found & LEVEL) : int(FLAT);
}

// Adds a row to the histograms, or subtracts it. `first` is the first column, and `lowest` the first level.
void count_row(int row, int first, int lowest, int levels, int width_words, bool add) {
    if (row < 0 || row >= height) return;
    for (int word = int(gl_LocalInvocationIndex); word < width_words; word += THREADS) {
        int column = first + 4 * word;
        [[unroll]] for (int i = 0; i < 4; ++i) {
            if (column < 0 || column + i >= width) continue;
            int level = flat_level(row, column + i) - lowest;
            if (uint(level) >= uint(levels)) continue;
            int place = level * width_words + word;
            uint one = 1u << (8 * i);
            histograms[place] = add ? histograms[place] + one : histograms[place] - one;
        }
    }
}

// Returns the places of a level in the window whose first column is `first`, from those of the histograms.
int count_of(int level, int first, int width_words) {
    int last = first + 2 * reach, word = level * width_words + (first >> 2), last_word = level * width_words + (last >> 2);
    uint sums = 0u;  // of the first and third, and of the second and fourth columns of the words
    uint kept = 0xffffffffu << (8 * (first & 3));
#ifdef STAGED
    for (; word < last_word; ++word) {
#else  // lavapipe ends the loops of a thread after 65,535 turns: this is none
    [[unroll]] for (int i = 0; i < MOST_WORDS; ++i, ++word) {
        if (word >= last_word) continue;
#endif
        uint counts = histograms[word] & kept;
        sums += (counts & 0x00ff00ffu) + (counts >> 8 & 0x00ff00ffu);
        kept = 0xffffffffu;
    }
    uint counts = histograms[last_word] & kept & 0xffffffffu >> (24 - 8 * (last & 3));
    sums += (counts & 0x00ff00ffu) + (counts >> 8 & 0x00ff00ffu);
    return int((sums & 0xffffu) + (sums >> 16));
}

float strongest_contrast(int level, int lowest, int first, int width_words) {
    float strongest = 0.0;
    int own = count_of(level - lowest, first, width_words);
    for (int d = 1; d <= contrasts; ++d) {
        bool visible = level <= int(table[d - 1]) && level + contrasts + d > darkest;
        int above = count_of(level + d - lowest, first, width_words), below = count_of(level - d - lowest, first, width_words);
        int other = max(above, below);
        precise float contrast = float(int(table[WEIGHTS + d - 1]) * own * other) * uintBitsToFloat(table[RECIPROCALS + own + other]);
        if (visible) strongest = max(strongest, contrast);
    }
    return strongest;
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int left = int(gl_WorkGroupID.x) * THREADS, column = left + thread;
    int top = workgroup_id().y * strip, bottom = min(top + strip, height);
    int place = workgroup_id().z * frame_values + first_value + column;
    int margin = (reach + 3) / 4 * 4, width_words = (THREADS + 2 * margin) / 4;  // columns on either side; words of a level
    int levels = MEMORY / width_words, of_band = levels - 2 * contrasts;
    int brightest = int(table[contrasts - 1]);

    if (thread == 0) bands = 0u;
    barrier();
    uint found = 0u;
    for (int row = top; row < bottom && column < width; ++row) {
        int level = flat_level(row, column);
        if (level <= brightest) found |= 1u << (level / of_band);
        else values[place + row * width] = 0.0;
    }
    if (found != 0u) atomicOr(bands, found);
    barrier();

    for (uint left_over = bands; left_over != 0u; left_over &= left_over - 1u) {
        int band = findLSB(left_over), lowest = band * of_band - contrasts;
        barrier();  // until the last row of the band before is read
        for (int i = thread; i < levels * width_words; i += THREADS) histograms[i] = 0u;
        for (int row = top - reach; row < bottom + reach; ++row) {
            int y = row - reach;
            barrier();
            count_row(row, left - margin, lowest, levels, width_words, true);
            if (y > top) count_row(y - reach - 1, left - margin, lowest, levels, width_words, false);
            barrier();
            if (y < top || column >= width) continue;
            int level = flat_level(y, column);
            if (level <= brightest && level / of_band == band) {
                values[place + y * width] = strongest_contrast(level, lowest, thread + margin - reach, width_words);
            }
        }
    }
}
