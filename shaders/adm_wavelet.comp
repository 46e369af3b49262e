#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Makes a scale of adm: the horizontal, vertical and diagonal bands of both planes, and their approximations.
//
// The bands are high-pass along the columns, along the rows, and along both. The words of scale 0 have the reference in their
// lower and the distorted plane in their upper half, in four planes: horizontal, vertical, diagonal, approximation. Later scales
// have these four of the reference, then those of the distorted plane, in words. A thread makes a unit of a row: 8 samples in the
// strip shape, 2 in the staged shape.
// Constants: 0 workgroup size, 1 sample format (scale 0), 5 scale. y: row. z: frame.

layout(local_size_x_id = 0) in;
layout(constant_id = 5) const uint SCALE = 0u;

#include "integer_constants.glsl"

layout(push_constant) uniform Push {
    int width;  // of the source
    int height;
    int pitch;
    int plane;
    int target_pitch;  // words
    int target_plane;
    int bits;          // of a sample of scale 0
    int sample_shift;  // the bits by which samples lie higher in their type
    int top;           // rows of bands above those that are written
    int left;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "integers.glsl"

#ifdef STAGED
const int OUTPUTS = 2;
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uint target[]; };
#else
const int OUTPUTS = 8;
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { uvec4 target[]; };
#endif
const int SPAN = 2 * OUTPUTS + 2;
const int APPROXIMATION = 3;  // its place among the planes of a scale

// Returns the place that is read for one that may be beyond an edge: 1 for -1, n - 1 for n.
int reflected(int place, int size) {
    place = abs(place);
    return place < size ? place : 2 * size - 1 - place;
}

#ifdef STAGED

int[SPAN] samples_of(int side, int row, int unit) {
    int samples[SPAN];
    int z = workgroup_id().z;
    [[unroll]] for (int i = 0; i < SPAN; ++i) {
        int column = reflected(min(2 * OUTPUTS * unit + i - 1, width + 1), width);
        if (SCALE == 0u) {
            samples[i] = int(integer_at((2 * z + side) * plane + row * pitch, column)) - (1 << bits >> 1);
        } else if (SCALE == 1u) {
            samples[i] = bitfieldExtract(int(words[(4 * z + APPROXIMATION) * plane + row * pitch + column]), 16 * side, 16);
        } else {
            samples[i] = int(words[(8 * z + 4 * side + APPROXIMATION) * plane + row * pitch + column]);
        }
    }
    return samples;
}

void mirror_columns(inout int sums[SPAN], int unit) {}

#else

int[SPAN] samples_of(int side, int row, int unit) {
    int samples[SPAN];
    int z = workgroup_id().z;
    if (SCALE == 0u && FORMAT == UINT8) {
        int start = (2 * z + side) * plane + row * pitch;
        uvec4 block = texelFetch(blocks, start + unit);
        samples[0] = int(texelFetch(blocks, start + max(unit - 1, 0)).w >> 24);
        [[unroll]] for (int i = 0; i < 16; ++i) samples[i + 1] = int(bitfieldExtract(block[i >> 2], 8 * (i & 3), 8));
        samples[17] = int(texelFetch(blocks, start + min(unit + 1, pitch - 1)).x & 0xffu);
    } else if (SCALE == 0u) {
        int start = (2 * z + side) * plane + row * pitch;
        samples[0] = int(texelFetch(blocks, start + max(2 * unit - 1, 0)).w >> 16);
        [[unroll]] for (int b = 0; b < 2; ++b) {
            uvec4 block = texelFetch(blocks, start + min(2 * unit + b, pitch - 1));
            [[unroll]] for (int i = 0; i < 8; ++i) samples[8 * b + i + 1] = int(bitfieldExtract(block[i >> 1], 16 * (i & 1), 16));
        }
        samples[17] = int(texelFetch(blocks, start + min(2 * unit + 2, pitch - 1)).x & 0xffffu);
        [[unroll]] for (int i = 0; i < SPAN; ++i) samples[i] >>= sample_shift;
    } else {
        int start = (SCALE == 1u ? 4 * z : 8 * z + 4 * side) * plane + APPROXIMATION * plane + row * pitch;
        samples[0] = int(texelFetch(blocks, start + max(4 * unit - 1, 0)).w);
        [[unroll]] for (int b = 0; b < 4; ++b) {
            uvec4 block = texelFetch(blocks, start + min(4 * unit + b, pitch - 1));
            [[unroll]] for (int i = 0; i < 4; ++i) samples[4 * b + i + 1] = int(block[i]);
        }
        samples[17] = int(texelFetch(blocks, start + min(4 * unit + 4, pitch - 1)).x);
        [[unroll]] for (int i = 0; i < SPAN; ++i) {
            if (SCALE == 1u) samples[i] = bitfieldExtract(samples[i], 16 * side, 16);
        }
    }
    if (SCALE == 0u) {
        [[unroll]] for (int i = 0; i < SPAN; ++i) samples[i] -= 1 << bits >> 1;
    }
    return samples;
}

// Replaces the columns beyond an edge. A branch would cost more: CPUs execute both of its sides.
void mirror_columns(inout int sums[SPAN], int unit) {
    sums[0] = unit == 0 ? sums[2] : sums[0];
    int edge = width - 2 * OUTPUTS * unit;  // the place of the last column
    [[unroll]] for (int i = 1; i < SPAN; ++i) {
        sums[i] = i == edge + 1 ? sums[i - 1] : sums[i];
        if (i >= 3) sums[i] = i == edge + 2 ? sums[i - 3] : sums[i];
    }
}

#endif

int weighted(ivec4 values, ivec4 taps) {
    return taps.x * values.x + taps.y * values.y + taps.z * values.z + taps.w * values.w;
}

// Returns the sum of taps times values, divided by 2^shift, a half rounded up. If values are `large`, the sum has 48 bits: each
// value is split, the sum of lower parts fits 32 bits, and that of upper parts may wrap, because the result fits.
int filtered(ivec4 values, ivec4 taps, int shift, bool large) {
    if (!large) return (weighted(values, taps) + (1 << shift >> 1)) >> shift;
    ivec4 low = bitfieldExtract(values, 0, shift);
    return weighted((values - low) >> shift, taps) + ((weighted(low, taps) + (1 << shift >> 1)) >> shift);
}

// Filters the rows of a unit, and stores one plane of a scale.
void store_band(int band, int first, int columns[2][SPAN], ivec4 taps) {
    int across_shift = (SCALE & 1u) == 0u ? 16 : 15;
    uint values[2][OUTPUTS];
    [[unroll]] for (int side = 0; side < 2; ++side) {
        [[unroll]] for (int c = 0; c < OUTPUTS; ++c) {
            ivec4 around = ivec4(
                columns[side][2 * c], columns[side][2 * c + 1], columns[side][2 * c + 2], columns[side][2 * c + 3]
            );
            values[side][c] = uint(filtered(around, taps, across_shift, SCALE > 0u));
        }
    }
    [[unroll]] for (int side = 0; side < 2; ++side) {
        if (SCALE > 0u || side == 0) {
            int plane_of_band = SCALE == 0u ? 4 * workgroup_id().z + band : 8 * workgroup_id().z + 4 * side + band;
            int start = plane_of_band * target_plane + workgroup_id().y * target_pitch + first;
            [[unroll]] for (int c = 0; c < OUTPUTS; ++c) {
                if (SCALE == 0u) values[side][c] = (values[0][c] & 0xffffu) | values[1][c] << 16;
            }
#ifdef STAGED
            target[start] = values[side][0];
            target[start + 1] = values[side][1];
#else
            target[start >> 2] = uvec4(values[side][0], values[side][1], values[side][2], values[side][3]);
            target[(start >> 2) + 1] = uvec4(values[side][4], values[side][5], values[side][6], values[side][7]);
#endif
        }
    }
}

void main() {
    int unit = int(gl_GlobalInvocationID.x);
    int target_width = (width + 1) >> 1, target_height = (height + 1) >> 1;
    if (unit * OUTPUTS >= target_width) return;
    int y = workgroup_id().y;
    int down_shift = SCALE == 0u ? bits : SCALE == 1u ? 0 : 16;

    int low[2][SPAN], high[2][SPAN];
    [[unroll]] for (int side = 0; side < 2; ++side) {
        int samples[4][SPAN];
        [[unroll]] for (int i = 0; i < 4; ++i) samples[i] = samples_of(side, reflected(2 * y + i - 1, height), unit);
        [[unroll]] for (int c = 0; c < SPAN; ++c) {
            ivec4 column = ivec4(samples[0][c], samples[1][c], samples[2][c], samples[3][c]);
            low[side][c] = filtered(column, ADM_LOW_PASS, down_shift, SCALE > 1u);
            high[side][c] = filtered(column, ADM_HIGH_PASS, down_shift, SCALE > 1u);
        }
        mirror_columns(low[side], unit);
        mirror_columns(high[side], unit);
    }

    // Only the inner part of the bands counts, and one sample around it.
    int first = unit * OUTPUTS;
    if (y >= top && y < target_height - top && first + OUTPUTS > left && first < target_width - left) {
        store_band(0, first, high, ADM_LOW_PASS);
        store_band(1, first, low, ADM_HIGH_PASS);
        store_band(2, first, high, ADM_HIGH_PASS);
    }
    if (SCALE < 3u) store_band(APPROXIMATION, first, low, ADM_LOW_PASS);
}
