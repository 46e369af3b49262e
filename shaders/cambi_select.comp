#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Finds the k-th largest contrast of each scale of cambi, in four runs, and adds the larger ones.
//
// Contrasts are positive floats, whose bits have their order, or 0. Bits 20 to 30, 10 to 19 and 0 to 9 are the digits. Run n counts
// the contrasts with each digit n, among those that have the digits of the k-th largest up to n; the last run adds. A
// workgroup finds those digits from the counts of the earlier runs. If fewer than k are positive, the k-th largest is 0.
//
// On CPUs a run -1 comes first, which adds all positive contrasts, and the others do nothing if fewer are positive than k: that is
// usual, and they are a pass over all contrasts each. A workgroup is one subgroup there, and a thread adds what THREADS / (threads of
// it) threads add on GPUs, so that sums are rounded alike and memory is read from the beginning to the end.
//
// A workgroup's partials are the sum and the number of its contrasts that are larger; after those of all come the k-th largest of
// the scales. `scales` has for each scale the place of its contrasts, their number, and k.
// The places are multiples of four, and contrasts are read by fours. Constants: 0 workgroup size (strip). y: scale. z: frame.

#include "integer_constants.glsl"

const int THREADS = CAMBI_SELECT_WORKGROUP;
#ifdef STAGED
layout(local_size_x = CAMBI_SELECT_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif
layout(push_constant) uniform Push {
    int run;           // 0 to 3, on CPUs -1 to 3
    int part;          // contrasts of a workgroup
    int frame_values;
    int frame_partials;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"

#include "blocks.glsl"

#ifdef STAGED
layout(std430, set = 0, binding = 1) readonly restrict buffer Scales { uvec4 scales[]; };
uvec4 scale_of(int number) { return scales[number]; }
#else
layout(set = 0, binding = 1) uniform usamplerBuffer scales;
uvec4 scale_of(int number) { return texelFetch(scales, number); }
#endif
layout(std430, set = 0, binding = 2) restrict buffer Histograms { uint histograms[]; };
layout(std430, set = 0, binding = 3) restrict buffer Partials { float partials[]; };

const int RUNS = 3;
const int FIRST_BIT[RUNS] = int[](20, 10, 0);
const int BINS[RUNS] = int[](2048, 1024, 1024);
const int FIRST_BIN[RUNS] = int[](0, 2048, 3072);
const int ALL_BINS = 4096;
const int MOST_SHARES = THREADS / 4;  // of a thread; no subgroup is smaller

shared uint counts[2048];
shared uint sums[THREADS];
shared float added[THREADS];
shared int found_digit;
shared uint found_rest;

int digit_of(uint bits, int number) {
    return int(bits >> FIRST_BIT[number]) & (BINS[number] - 1);
}

// Finds the digit that the `wanted`-th largest contrast of a run has, and its place among those of the same digit; -1 if there
// are fewer.
void find_digit(int number, uint wanted, int first) {
    int thread = int(gl_LocalInvocationIndex), threads = int(gl_WorkGroupSize.x), share = BINS[number] / threads;
    uint sum = 0u;
    for (int i = 0; i < share; ++i) sum += histograms[first + FIRST_BIN[number] + thread * share + i];
    sums[thread] = sum;
    barrier();
    if (thread == 0) {
        int digit = -1, above = threads - 1;
        while (above >= 0 && sums[above] < wanted) wanted -= sums[above--];
        if (above >= 0) {
            digit = (above + 1) * share - 1;
            while (histograms[first + FIRST_BIN[number] + digit] < wanted) wanted -= histograms[first + FIRST_BIN[number] + digit--];
        }
        found_digit = digit;
        found_rest = wanted;
    }
    barrier();
}

// Adds a number to a sum. `excess` is what rounding has added: W. Kahan, "Further remarks on reducing truncation errors".
void add_to(inout float sum, inout float excess, float number) {
    precise float value = number - excess;
    precise float rounded = sum + value;
    precise float of_rounding = (rounded - sum) - value;
    excess = of_rounding;
    sum = rounded;
}

// Adds the contrasts from `begin` to `end` that are larger than `known`, whose bits are its own.
#ifdef STAGED
void add_larger(int first, int begin, int end, uint known, out float sum, out uint larger) {
    float excess = 0.0;
    sum = 0.0;
    larger = 0u;
    for (int i = begin + 4 * int(gl_LocalInvocationIndex); i < end; i += 4 * THREADS) {
        uvec4 four = block_at(first + i / 4);
        [[unroll]] for (int j = 0; j < 4; ++j) {
            bool counts_here = i + j < end && four[j] > known;
            add_to(sum, excess, counts_here ? uintBitsToFloat(four[j]) : 0.0);
            larger += uint(counts_here);
        }
    }
}
#else
void add_larger(int first, int begin, int end, uint known, out float sum, out uint larger) {
    const int SHARES = THREADS / int(gl_WorkGroupSize.x);
    float sums[MOST_SHARES], excesses[MOST_SHARES];
    [[unroll]] for (int share = 0; share < SHARES; ++share) sums[share] = excesses[share] = 0.0;
    larger = 0u;
    for (int row = begin; row < end; row += 4 * THREADS) {
        [[unroll]] for (int share = 0; share < SHARES; ++share) {
            int i = row + 4 * (share * int(gl_WorkGroupSize.x) + int(gl_LocalInvocationIndex));
            uvec4 four = block_at(first + i / 4);
            float added_to = sums[share], excess = excesses[share];
            [[unroll]] for (int j = 0; j < 4; ++j) {
                bool counts_here = i + j < end && four[j] > known;
                add_to(added_to, excess, counts_here ? uintBitsToFloat(four[j]) : 0.0);
                larger += uint(counts_here);
            }
            sums[share] = i < end ? added_to : sums[share];
            excesses[share] = i < end ? excess : excesses[share];
        }
    }
    [[unroll]] for (int stage = 1; stage < 7; ++stage) {
        int distance = SHARES >> stage;
        [[unroll]] for (int share = 0; share < SHARES / 2; ++share) {
            if (share < distance) sums[share] += sums[share + distance];
        }
    }
    sum = sums[0];
}
#endif

void main() {
    int thread = int(gl_LocalInvocationIndex), scale = workgroup_id().y, group = int(gl_WorkGroupID.x);
    int groups = int(gl_NumWorkGroups.x), threads = int(gl_WorkGroupSize.x), of_frame = workgroup_id().z * frame_partials;
    uvec4 of_scale = scale_of(scale);
    int first = (workgroup_id().z * frame_values + int(of_scale.x)) / 4;
    int bins = (workgroup_id().z * int(CAMBI_SCALES) + scale) * ALL_BINS;
    int begin = group * part, end = min(begin + part, int(of_scale.y));

    uint known = 0u, wanted = of_scale.z;  // the digits that are known, as bits
    bool enough = begin < end;
#ifndef STAGED
    float positive = 0.0;
    for (int i = 0; i < groups; ++i) positive += run < 0 ? 0.0 : partials[of_frame + 2 * (scale * groups + i) + 1];
    if (run >= 0 && uint(positive) < wanted) return;
#endif
    for (int number = 0; number < run; ++number) {
        if (enough) find_digit(number, wanted, bins);
        enough = enough && found_digit >= 0;
        known |= enough ? uint(found_digit) << FIRST_BIT[number] : 0u;
        wanted = found_rest;
        barrier();
    }

    if (run == RUNS || run < 0) {
        float sum;
        uint larger;
        add_larger(first, begin, end, known, sum, larger);
        added[thread] = sum;
        sums[thread] = larger;
        for (int distance = threads / 2; distance > 0; distance >>= 1) {
            barrier();
            if (thread < distance) {
                added[thread] += added[thread + distance];
                sums[thread] += sums[thread + distance];
            }
        }
        if (thread == 0) {
            partials[of_frame + 2 * (scale * groups + group)] = added[0];
            partials[of_frame + 2 * (scale * groups + group) + 1] = float(sums[0]);
            if (group == 0) partials[of_frame + 2 * groups * CAMBI_SCALES + scale] = uintBitsToFloat(known);
        }
        return;
    }

    if (!enough || begin >= end) return;
    for (int i = thread; i < BINS[run]; i += threads) counts[i] = 0u;
    barrier();
    uint before = run == 0 ? 0u : 0xffffffffu << FIRST_BIT[max(run - 1, 0)];
    for (int i = begin + 4 * thread; i < end; i += 4 * threads) {
        uvec4 four = block_at(first + i / 4);
        [[unroll]] for (int j = 0; j < 4; ++j) {
            if (i + j < end && four[j] != 0u && (four[j] & before) == known) atomicAdd(counts[digit_of(four[j], run)], 1u);
        }
    }
    barrier();
    for (int i = thread; i < BINS[run]; i += threads) {
        if (counts[i] != 0u) atomicAdd(histograms[bins + FIRST_BIN[run] + i], counts[i]);
    }
}
