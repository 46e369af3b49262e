#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
// Makes the approximations of a scale of adm, decouples its bands, masks them, and sums the cubes of each row.
//
// A word of approximations of scale 0 has the reference in its lower and the distorted plane in its upper half. Later scales have
// two planes of words. Of the bands, only the inner part counts. A row of a workgroup has six sums of 64 bits: the masked
// horizontal, vertical and diagonal bands of the restored part, and those of the reference. With AIM it has three more: the masked
// bands of the additions. adm_rows.comp adds them, because libvmaf rounds each row.
// Every step gives the integers of libvmaf's integer_adm.c, without 64-bit integers and doubles (docs/adr/0004).
// Constants: 0 workgroup size (strip), 1 sample format (scale 0), 5 scale, 6 aim. z: frame.

layout(constant_id = 5) const uint SCALE = 0u;  // that is made; scale 3 has the kernel of scale 2
layout(constant_id = 6) const uint AIM = 0u;    // 1: additions are masked by restored bands, too

#include "constants.glsl"
#include "integer_constants.glsl"

#ifdef STAGED
#define THREADS ADM_WORKGROUP
layout(local_size_x = ADM_WORKGROUP) in;
#else
layout(local_size_x_id = 0) in;
#endif

layout(push_constant) uniform Push {
    int width;  // of the source
    int height;
    int pitch;
    int target_pitch;  // words
    int strip;         // rows that a workgroup makes
    int top;           // rows of bands above those that count, and below
    int left;
    int bits;          // of a sample of scale 0; of the other scales those by which sums along a row are rounded, 16 or 15
    int sample_shift;  // the bits by which samples lie higher in their type
    int gain_limit;
    int edge_weight;      // of the horizontal and of the vertical band
    int diagonal_weight;
    int mask_shift;       // of the cubes of masked bands
    int band_shift;       // of the cubes of bands
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "store.glsl"
#include "integers.glsl"
#include "wide.glsl"
#include "adm_wavelet.glsl"
#include "adm_decouple.glsl"

#ifdef STAGED
const int COLUMNS = 1;  // of a thread
const int GROUP_COLUMNS = THREADS - 2;
#else
const int COLUMNS = STRIP_COLUMNS;
const int GROUP_COLUMNS = COLUMNS * int(gl_WorkGroupSize.x);
#endif
const int MOST_SUMS = 3 * BANDS;
const int PARTS = 2;  // the restored part, and the additions

int band_width() {
    return (width + 1) >> 1;
}

bool column_counts(int column) {
    return column >= left && column < band_width() - left;
}

int band_height() {
    return (height + 1) >> 1;
}

// Returns where a row of the source begins. A word of scale 1 has both planes.
int row_start(int side, int row) {
    int plane = SCALE == 1u ? workgroup_id().z : 2 * workgroup_id().z + side;
    return (plane * height + reflected(row, height)) * pitch;
}

// Returns where a row of approximations begins, in words.
int target_start(int side, int row) {
    int plane = SCALE == 0u ? workgroup_id().z : 2 * workgroup_id().z + side;
    return (plane * band_height() + row) * target_pitch;
}

// The rows of a workgroup. Those from `begin` to `end` count.
struct Strip {
    int first;
    int rows;
    int begin;
    int end;
};

Strip strip_of_workgroup() {
    Strip rows;
    rows.first = workgroup_id().y * strip;
    rows.rows = min(strip, band_height() - rows.first);
    rows.begin = max(rows.first, top);
    rows.end = min(rows.first + rows.rows, band_height() - top);
    int first_column = workgroup_id().x * GROUP_COLUMNS;
    bool counts = rows.begin < rows.end && first_column < band_width() - left && first_column + GROUP_COLUMNS > left;
    rows.begin = counts ? rows.begin : rows.first;
    rows.end = counts ? rows.end : rows.first;
    return rows;
}

// Returns a row that does not count by its number among these.
int outer_row(Strip rows, int number) {
    int row = rows.first + number;
    return row < rows.begin ? row : row + rows.end - rows.begin;
}

// Returns the sums of a row.
int sum_count() {
    return 2 * BANDS + int(AIM) * BANDS;
}

// Returns the place of a sum of a row, which is counted from `top`.
int row_place(int sum, int row) {
    int first_part = left / GROUP_COLUMNS, parts = (band_width() - left - 1) / GROUP_COLUMNS + 1 - first_part;
    int place = (workgroup_id().z * sum_count() + sum) * parts + workgroup_id().x - first_part;
    return place * (band_height() - 2 * top) + row;
}

// Returns the sum of a subgroup. 25 bits of 128 threads fit a word, and so does what they carry into the next 25.
uvec2 add_subgroup(uvec2 value) {
    const uint DIGIT = (1u << 25) - 1u;
    uvec3 sums = uvec3(value.x & DIGIT, low_word(value, 25) & DIGIT, value.y >> 18);
#ifdef STAGED
    // NVIDIA's compiler (580.159) gave sums of subgroupAdd the words of another call, and with aim they took longer.
    uint size = min(gl_SubgroupSize, uint(THREADS));
    for (uint distance = 1u; distance < size; distance <<= 1) {
        sums += uvec3(
            subgroupShuffleXor(sums.x, distance), subgroupShuffleXor(sums.y, distance), subgroupShuffleXor(sums.z, distance)
        );
    }
#else
    sums = subgroupAdd(sums);
#endif
    uint middle = sums.y + (sums.x >> 25);
    return uvec2((sums.x & DIGIT) | middle << 25, (middle >> 7) + (sums.z << 18));
}

#ifdef STAGED
#include "adm_staged.glsl"
#else
#include "adm_strip.glsl"
#endif
