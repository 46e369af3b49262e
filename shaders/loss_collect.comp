#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Adds the gradient of the coarser scales to the gradient of a scale. This is the adjoint of the pyramid's step, written as a
// gather: each sample collects from the coarse samples that it was averaged or filtered into.
//
//   gradient(x, y) = slope * gradient(x, y) + coarse_slope * sum over X, Y of t(x, X) t(y, Y) coarse(X, Y)
//
// Here t(x, X) is the weight of sample x in sample X of the coarser scale. The value of a plane is the product of the powers in
// Means. `slope` is its derivative with respect to the mean of this scale. `coarse_slope` is the same for the coarser scale if
// that is the last one. Otherwise it is 1, because the previous dispatch has applied it.
// z: plane. Constants: 0 workgroup size, 3 the pyramid.

#include "constants.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool AVERAGE = true;  // means of 2x2 samples; if false, the low-pass of ms_ssim_decimate.comp

layout(std430, set = 0, binding = 0) readonly restrict buffer Coarse { float coarse[]; };
layout(std430, set = 0, binding = 1) readonly restrict buffer Means { vec4 means[]; };  // deficit, power, slope of each scale
layout(std430, set = 0, binding = 2) restrict buffer Gradient { float gradient[]; };
layout(push_constant) uniform Push {
    int width;         // of the gradient, samples
    int height;
    int pitch;         // of the coarser one from row to row, in floats
    int plane;         // from plane to plane
    int target_pitch;  // the same of the gradient
    int target_plane;
    int scale_index;
    int scales;
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"

float low_pass(int k) {
    return abs(k) <= 4 ? LOW_PASS[clamp(k + 4, 0, 8)] : 0.0;
}

// Returns the weight of sample `index` of `size` in sample `coarse_index`: its own and the weights of its mirror images beyond
// both borders.
float filter_weight(int index, int size, int coarse_index) {
    int centre = 2 * coarse_index;
    return low_pass(index - centre) + low_pass(-1 - index - centre) + low_pass(2 * size - 1 - index - centre);
}

float collect_averaged(int start, int column, int row) {
    return 0.25 * coarse[start + ((row + (height & 1)) >> 1) * pitch + ((column + (width & 1)) >> 1)];
}

// Returns the weights of a column of the gradient in the coarse samples from `left`, the first within its reach.
void weights_across(out float across[5], int left, int column) {
    int coarse_width = (width + 1) >> 1;
    [[unroll]] for (int i = 0; i < 5; ++i)
        across[i] = left + i >= 0 && left + i < coarse_width ? filter_weight(column, width, left + i) : 0.0;
}

float filtered_across(float across[5], int start, int left, int coarse_row) {
    int coarse_width = (width + 1) >> 1, coarse_height = (height + 1) >> 1;
    int row = start + clamp(coarse_row, 0, coarse_height - 1) * pitch;
    float sum = 0.0;
    [[unroll]] for (int i = 0; i < 5; ++i) sum += across[i] * coarse[row + clamp(left + i, 0, coarse_width - 1)];
    return sum;
}

// Collects one row, at any position.
float collect_filtered_row(float across[5], int start, int left, int row) {
    int above = (row - 3) >> 1, coarse_height = (height + 1) >> 1;
    float sum = 0.0;
    for (int j = 0; j < 5; ++j) {
        float weight = above + j >= 0 && above + j < coarse_height ? filter_weight(row, height, above + j) : 0.0;
        sum += weight * filtered_across(across, start, left, above + j);
    }
    return sum;
}

// Collects POINTWISE_ROWS rows that begin at an even row and need no mirroring. Each coarse row is filtered horizontally once,
// and added to the rows within its reach with constant taps.
void collect_filtered(out float collected[POINTWISE_ROWS], float across[5], int start, int left, int first_row) {
    int above = (first_row >> 1) - 2;  // the first coarse row within reach
    [[unroll]] for (int r = 0; r < POINTWISE_ROWS; ++r) collected[r] = 0.0;
    [[unroll]] for (int j = 0; j < POINTWISE_ROWS / 2 + 4; ++j) {
        float sum = filtered_across(across, start, left, above + j);
        [[unroll]] for (int r = 0; r < POINTWISE_ROWS; ++r) {
            int k = r + 4 - 2 * j;  // first_row + r less the coarse row's centre
            if (k >= -4 && k <= 4) collected[r] += LOW_PASS[k + 4] * sum;
        }
    }
}

void main() {
    int column = int(gl_GlobalInvocationID.x);
    if (column >= width) return;
    int z = workgroup_id().z;
    float value = 1.0;
    for (int s = 0; s < scales; ++s) value *= means[z * scales + s].y;
    float slope = value * means[z * scales + scale_index].z;
    float coarse_slope = scale_index + 2 == scales ? value * means[z * scales + scale_index + 1].z : 1.0;
    int first_row = workgroup_id().y * POINTWISE_ROWS;
    int start = z * plane, target = z * target_plane + first_row * target_pitch + column;
    float collected[POINTWISE_ROWS];
    if (AVERAGE) {
        [[unroll]] for (int r = 0; r < POINTWISE_ROWS; ++r)
            collected[r] = collect_averaged(start, column, min(first_row + r, height - 1));
    } else {
        int left = (column - 3) >> 1;
        float across[5];
        weights_across(across, left, column);
        bool at_border = first_row < 4 || first_row + POINTWISE_ROWS > height - 4;
        if (at_border) {  // a loop: unrolled, its mirrored taps take compilers half a minute
            for (int r = 0; r < POINTWISE_ROWS && first_row + r < height; ++r) {
                int at = target + r * target_pitch;
                gradient[at] = slope * gradient[at] + coarse_slope * collect_filtered_row(across, start, left, first_row + r);
            }
            return;
        }
        collect_filtered(collected, across, start, left, first_row);
    }
    [[unroll]] for (int r = 0; r < POINTWISE_ROWS; ++r)
        if (first_row + r < height) {
            int at = target + r * target_pitch;
            gradient[at] = slope * gradient[at] + coarse_slope * collected[r];
        }
}
