#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
// Sums the squared differences of two planes for each workgroup.
//
//   (a - b)^2 of each of the w x h samples; no border is read
//
// A thread owns a column of units. A unit is a block of 16 bytes in the strip shape and a word of 4 bytes in the staged shape.
// The thread reads `strip` units downwards, so that every byte is read once. Integers are used as they are stored, without
// `scale`: their sums have no rounding at all. For floats, the difference and the square are each rounded to float32, as in
// libvmaf's compute_psnr, and the sum carries the error of every addition.
//
// A workgroup has three sums, each exact in float32 for up to 256 threads of up to 4096 samples. For integers they are the
// digits of the sum to the base 2^16, the lowest first. For floats they are the rest after the leading digits, the leading
// digits, and 0. The host adds them in double precision.
// Constants: 0 workgroup size (strip), 1 sample format. z: frame.

const int SUMS = 3;

#include "constants.glsl"

#ifdef STAGED
layout(local_size_x = WINDOW_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif

#include "walk.glsl"
#include "exact.glsl"

const int SAMPLES_PER_WORD = FORMAT == FLOAT32 ? 1 : FORMAT == UINT8 ? 4 : 2;

struct SquareSums {
    uint low;        // integers: the whole sum for 8 bits, otherwise the sum of the squares' low halves
    uint high;       // integers: the sum of the squares' high halves
    ExactSum exact;  // floats
};

// Returns a mask of the bits of a word that belong to `count` samples.
uint mask_of(int count) {
    int bits = clamp(count, 0, SAMPLES_PER_WORD) * (32 / SAMPLES_PER_WORD);
    return bits == 32 ? 0xffffffffu : (1u << bits) - 1u;
}

void add_squares(inout SquareSums sums, uint a, uint b) {
    if (FORMAT == FLOAT32) {
        precise float difference = uintBitsToFloat(a) - uintBitsToFloat(b);
        add_product(sums.exact, difference, difference);
    } else if (FORMAT == UINT8) {
        [[unroll]] for (int i = 0; i < 4; ++i) {
            uint difference = bitfieldExtract(a, 8 * i, 8) - bitfieldExtract(b, 8 * i, 8);
            sums.low += difference * difference;
        }
    } else {
        [[unroll]] for (int i = 0; i < 2; ++i) {
            uint difference = bitfieldExtract(a, 16 * i, 16) - bitfieldExtract(b, 16 * i, 16);
            uint square = difference * difference;  // below 2^32; a difference that wraps does not change it
            sums.low += square & 0xffffu;
            sums.high += square >> 16;
        }
    }
}

#ifdef STAGED
shared float subgroup_most[MAX_SUBGROUPS];
#endif

// Returns the largest of the values of a workgroup's threads.
float most_of_group(float value) {
    float most = subgroupMax(value);
#ifdef STAGED
    if (subgroupElect()) subgroup_most[gl_SubgroupID] = most;
    barrier();
    for (uint i = 0u; i < gl_NumSubgroups; ++i) most = max(most, subgroup_most[i]);
#endif
    return most;
}

// Returns the leading digits of a sum that is at most `most`: a multiple, at most 2^16, of a power of two. The power is the
// same for the whole workgroup, so that adding the values of 256 threads rounds nothing. Returns NaN if `most` is infinite.
float leading_digits(float value, float most) {
    precise float shift = 384.0 * uintBitsToFloat(floatBitsToUint(most) & 0x7f800000u);
    precise float shifted = value + shift;
    precise float leading = shifted - shift;
    return leading;
}

void main() {
    int unit = int(gl_GlobalInvocationID.x);
    int inside = width - unit * UNIT_WORDS * SAMPLES_PER_WORD;  // samples of the unit that belong to the planes
    uint masks[UNIT_WORDS];
    [[unroll]] for (int w = 0; w < UNIT_WORDS; ++w) masks[w] = mask_of(inside - w * SAMPLES_PER_WORD);

    SquareSums sums = SquareSums(0u, 0u, ExactSum(0.0, 0.0));
    if (inside > 0) {
        int top = workgroup_id().y * strip;
        int place = workgroup_id().z * 2 * plane + top * pitch + unit;
        for (int rows = min(strip, height - top); rows > 0; --rows, place += pitch) {
            uint a[UNIT_WORDS] = unit_at(place), b[UNIT_WORDS] = unit_at(place + plane);
            [[unroll]] for (int w = 0; w < UNIT_WORDS; ++w) add_squares(sums, a[w] & masks[w], b[w] & masks[w]);
        }
    }

    if (FORMAT == FLOAT32) {
        float leading = leading_digits(sums.exact.value, most_of_group(sums.exact.value));
        precise float rest = (sums.exact.value - leading) + sums.exact.error;
        store_sums(float[](rest, leading, 0.0));
    } else {
        uint high = sums.high + (sums.low >> 16);
        store_sums(float[](float(sums.low & 0xffffu), float(high & 0xffffu), float(high >> 16)));
    }
}
