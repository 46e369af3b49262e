#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Computes the strongest contrast of each flat place of a scale of cambi with its window.
//
//   contrast(d) = weight(d) p0 p1 / (p0 + p1)    p0 flat places of the window have the level of the place, p1 that of d more, or
//                                                of d less, whichever are more
//
// A thread has a column and walks down a strip, with a histogram of its window in shared memory: it adds the row that enters the
// window and subtracts the one that leaves it. A histogram has CAMBI_BINS levels, so the strip is walked once for each band of
// levels that places of its columns have. Two counts share a word.
// `table` has the brightest levels at which each contrast is visible, the weights, and 1 / n rounded to float32.
// The workgroup size is fixed, and there are no constants. y: strip. z: frame.

#include "integer_constants.glsl"

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
const uint NOT_FLAT = 0xffffu;

shared uint histograms[CAMBI_BINS / 2][CAMBI_WORKGROUP];
shared uint entering[CAMBI_WORKGROUP + 2 * CAMBI_REACH];
shared uint leaving[CAMBI_WORKGROUP + 2 * CAMBI_REACH];
shared uint bands;

// Returns the level of a flat place.
uint flat_level(int row, int column) {
    if (row < 0 || row >= height || column < 0 || column >= width) return NOT_FLAT;
    uint found = sample_of(words[workgroup_id().z * plane + row * pitch + (column >> 1)], column);
    return (found & FLAT) != 0u ? found & LEVEL : NOT_FLAT;
}

uint count_of(int bin) {
    return bitfieldExtract(histograms[bin >> 1][gl_LocalInvocationIndex], 16 * (bin & 1), 16);
}

float strongest_contrast(int level, int first) {
    float strongest = 0.0;
    int own = int(count_of(level - first));
    for (int d = 1; d <= contrasts; ++d) {
        bool visible = level <= int(table[d - 1]) && level + contrasts + d > darkest;
        int others = int(max(count_of(level + d - first), count_of(level - d - first)));
        precise float contrast = float(int(table[WEIGHTS + d - 1]) * own * others) * uintBitsToFloat(table[RECIPROCALS + own + others]);
        if (visible) strongest = max(strongest, contrast);
    }
    return strongest;
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int left = int(gl_WorkGroupID.x) * CAMBI_WORKGROUP, column = left + thread;
    int top = workgroup_id().y * strip, bottom = min(top + strip, height);
    int first_of_column = workgroup_id().z * frame_values + first_value + column;
    int brightest = int(table[contrasts - 1]), of_band = CAMBI_BINS - 2 * contrasts;

    if (thread == 0) bands = 0u;
    barrier();
    uint found = 0u;
    for (int row = top; row < bottom && column < width; ++row) {
        int level = int(flat_level(row, column));
        if (level <= brightest) found |= 1u << (level / of_band);
        else values[first_of_column + row * width] = 0.0;
    }
    if (found != 0u) atomicOr(bands, found);
    barrier();

    for (uint left_over = bands; left_over != 0u; left_over &= left_over - 1u) {
        int band = findLSB(left_over), first = band * of_band - contrasts;
        for (int i = 0; i < CAMBI_BINS / 2; ++i) histograms[i][thread] = 0u;
        for (int row = top - reach; row < bottom + reach; ++row) {
            int y = row - reach;
            barrier();
            for (int i = thread; i < CAMBI_WORKGROUP + 2 * reach; i += CAMBI_WORKGROUP) {
                entering[i] = flat_level(row, left - reach + i);
                leaving[i] = y > top ? flat_level(y - reach - 1, left - reach + i) : NOT_FLAT;
            }
            barrier();
            for (int i = 0; i <= 2 * reach; ++i) {
                int added = int(entering[thread + i]) - first, dropped = int(leaving[thread + i]) - first;
                if (uint(added) < uint(CAMBI_BINS)) histograms[added >> 1][thread] += 1u << (16 * (added & 1));
                if (uint(dropped) < uint(CAMBI_BINS)) histograms[dropped >> 1][thread] -= 1u << (16 * (dropped & 1));
            }
            if (y < top || column >= width) continue;
            int level = int(flat_level(y, column));
            if (level <= brightest && level / of_band == band) {
                values[first_of_column + y * width] = strongest_contrast(level, first);
            }
        }
    }
}
