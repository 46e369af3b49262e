// Moves the window over the planes in the shape for GPUs: a workgroup processes a strip of LOSS_WORKGROUP columns of samples
// from top to bottom, CHUNK rows at a time, as window_fast_staged.glsl does. The gradient is gathered in the same pass, ten rows
// later than the samples:
//
//   samples ── down ──► column sums ── across ──► windows ── down ──► column sums ── across ──► gradient
//            one column per thread     four per thread     one column per thread     four per thread
//
// "Down" is a transposed filter in registers. "Across" reads shared memory sixteen bytes at a time. The gradient also needs
// windows beyond the workgroup's outputs. The workgroup computes these itself, like its neighbour, so no window is written to
// memory (docs/adr/0017).

layout(local_size_x = LOSS_WORKGROUP) in;

layout(std430, set = 0, binding = 0) readonly buffer Distorted { float distorted[]; };
layout(std430, set = 0, binding = 1) readonly buffer Reference { float reference[]; };

const int CHUNK = 4;  // rows between barriers, and columns of a thread in the pass across
const int LANES_ACROSS = LOSS_WORKGROUP / CHUNK;
const int FOURS = (CHUNK + 10 + 3) / 4;  // vectors that the windows of these columns span
const int WIDTH = LOSS_WORKGROUP / 4;

shared vec4 column_sums[4][CHUNK][WIDTH + FOURS - 1];  // of the moments, then of the derivatives that the gradient gathers

#ifdef GRADIENT
// This is the same memory as rows of four, for planes whose rows begin on four floats.
layout(std430, set = 0, binding = 0) readonly buffer DistortedFours { vec4 distorted_fours[]; };
layout(std430, set = 0, binding = 1) readonly buffer ReferenceFours { vec4 reference_fours[]; };
layout(std430, set = 0, binding = 2) writeonly buffer Target { float target[]; };
layout(std430, set = 0, binding = 2) writeonly buffer TargetFours { vec4 target_fours[]; };

const int HALO = 10;       // columns of samples that the outputs need on each side
const int ROWS_ABOVE = 5;  // windows that the first output row needs above itself
shared vec4 windows[3][CHUNK][WIDTH];
#else
const int HALO = 5;
const int ROWS_ABOVE = 0;
#endif
const int OUTPUTS = LOSS_WORKGROUP - 2 * HALO;

// Adds a row to a transposed filter of eleven taps and stores the sum that it completes.
#define DOWN(done, open, value)                                                                             \
    {                                                                                                       \
        float value_ = value;                                                                               \
        done[lane >> 2][lane & 3] = open[0] + WINDOW[10] * value_;                                          \
        [[unroll]] for (int k_ = 0; k_ < 9; ++k_) open[k_] = open[k_ + 1] + WINDOW[9 - k_] * value_;        \
        open[9] = WINDOW[0] * value_;                                                                       \
    }

// Computes four neighbouring sums of eleven columns.
#define ACROSS(result, columns)                                                                             \
    {                                                                                                       \
        float column_[4 * FOURS];                                                                           \
        [[unroll]] for (int i_ = 0; i_ < FOURS; ++i_) {                                                     \
            vec4 four_ = columns[slot_across][lane_across + i_];                                            \
            [[unroll]] for (int j_ = 0; j_ < 4; ++j_) column_[4 * i_ + j_] = four_[j_];                     \
        }                                                                                                   \
        [[unroll]] for (int w_ = 0; w_ < CHUNK; ++w_) {                                                     \
            float sum_ = WINDOW[0] * column_[w_];                                                           \
            [[unroll]] for (int k_ = 1; k_ < 11; ++k_) sum_ += WINDOW[k_] * column_[w_ + k_];               \
            result[w_] = sum_;                                                                              \
        }                                                                                                   \
    }

void main() {
    int lane = int(gl_LocalInvocationIndex);
    int first_column = int(gl_WorkGroupID.x) * OUTPUTS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);
    int plane_start = workgroup_id().z * plane;
    int column = first_column - HALO + lane;
    bool column_inside = column >= 0 && column < width;
    int column_start = plane_start + clamp(column, 0, width - 1);
    bool columns_inside = first_column >= HALO && first_column - HALO + LOSS_WORKGROUP <= width;
    int lane_across = lane % LANES_ACROSS;
    int slot_across = lane / LANES_ACROSS;

    vec2 candidates[5];  // from five rows and columns of the workgroup's outputs
    [[unroll]] for (int k = 0; k < 5; ++k) {
        int candidate_column = min(first_column + ((4 * k + 1) % 10) * OUTPUTS / 10, width - 1);
        int at = plane_start + (top + (2 * k + 1) * rows / 10) * pitch + candidate_column;
        candidates[k] = pivot_candidate(distorted[at], reference[at]);
    }
    vec2 pivot = pivot_of(candidates);

    int centre = first_column - HALO + 5 + CHUNK * lane_across;  // column of the thread's first window
    bool exists[CHUNK];   // which of its windows exist; windows past the workgroup's samples reach no output
    float counts[CHUNK];  // 1 for each that this workgroup sums
    bool all_exist = true;
    [[unroll]] for (int w = 0; w < CHUNK; ++w) {
        int at = centre + w;
        exists[w] = at >= margin && at < width - margin;
        all_exist = all_exist && exists[w];
        counts[w] = exists[w] && at >= first_column && at < first_column + OUTPUTS ? 1.0 : 0.0;
    }
    if (lane < FOURS - 1)  // the last threads read past the columns; these values have weight 0, but must not be NaN
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot)
            [[unroll]] for (int m = 0; m < 4; ++m) column_sums[m][slot][WIDTH + lane] = vec4(0.0);

    float open[4][10], sum = 0.0;
    [[unroll]] for (int m = 0; m < 4; ++m) [[unroll]] for (int k = 0; k < 10; ++k) open[m][k] = 0.0;
#ifdef GRADIENT
    float open_windows[3][10];
    [[unroll]] for (int m = 0; m < 3; ++m) [[unroll]] for (int k = 0; k < 10; ++k) open_windows[m][k] = 0.0;
    bool in_fours = ((pitch | plane | target_pitch | target_plane) & 3) == 0;
    int output_column = first_column + CHUNK * lane_across;
    int outputs = min(OUTPUTS, width - first_column) - CHUNK * lane_across;  // how many outputs of the thread exist
#endif

    // Rows of windows count from ROWS_ABOVE above the first output. The samples that complete a window are five rows below it.
    int window_rows = rows + 2 * ROWS_ABOVE;
    for (int chunk = -10; chunk < window_rows; chunk += CHUNK) {
        int first_row = top - ROWS_ABOVE + chunk + 5;
        float x[CHUNK], y[CHUNK];
        if (columns_inside && first_row >= 0 && first_row + CHUNK <= height) {
            [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
                x[slot] = distorted[column_start + (first_row + slot) * pitch];
                y[slot] = reference[column_start + (first_row + slot) * pitch];
            }
        } else {
            [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
                int row = first_row + slot;
                bool inside = column_inside && row >= 0 && row < height;
                x[slot] = distorted[column_start + clamp(row, 0, height - 1) * pitch];
                y[slot] = reference[column_start + clamp(row, 0, height - 1) * pitch];
                x[slot] = inside ? x[slot] : 0.0;
                y[slot] = inside ? y[slot] : 0.0;
            }
        }
        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot) {
            float u = (x[slot] + y[slot]) - pivot.x, d = (x[slot] - y[slot]) - pivot.y;
            DOWN(column_sums[0][slot], open[0], u)
            DOWN(column_sums[1][slot], open[1], d)
            DOWN(column_sums[2][slot], open[2], u * u)
            DOWN(column_sums[3][slot], open[3], d * d)
        }
        barrier();

        int centre_row = top - ROWS_ABOVE + chunk + slot_across;
        bool row_exists = chunk + slot_across >= 0 && centre_row >= margin && centre_row < height - margin;
        bool row_counts = row_exists && centre_row >= top && centre_row < top + rows;
#ifdef GRADIENT
        vec4 by_moment[3] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0));
        if (row_exists) {
#else
        if (row_counts) {
#endif
            float moments[4][CHUNK], lacks = 0.0;
            [[unroll]] for (int m = 0; m < 4; ++m) ACROSS(moments[m], column_sums[m])
            [[unroll]] for (int w = 0; w < CHUNK; ++w) {
                Window window = loss_window(Moments(moments[0][w], moments[1][w], moments[2][w], moments[3][w]), pivot);
                lacks += counts[w] * window.deficit;
#ifdef GRADIENT
                [[unroll]] for (int m = 0; m < 3; ++m) by_moment[m][w] = window.by_moment[m];
#endif
            }
            sum += row_counts ? lacks : 0.0;
        }
#ifdef GRADIENT
        if (!all_exist)
            [[unroll]] for (int w = 0; w < CHUNK; ++w)
                [[unroll]] for (int m = 0; m < 3; ++m) by_moment[m][w] = exists[w] ? by_moment[m][w] : 0.0;
        [[unroll]] for (int m = 0; m < 3; ++m) windows[m][slot_across][lane_across] = by_moment[m];
        barrier();

        [[unroll]] for (int slot = 0; slot < CHUNK; ++slot)
            [[unroll]] for (int m = 0; m < 3; ++m)
                DOWN(column_sums[m][slot], open_windows[m], windows[m][slot][lane >> 2][lane & 3])
        barrier();

        int output_row = chunk - 10 + slot_across;
        if (output_row >= 0 && output_row < rows && outputs > 0) {
            float gathered[3][CHUNK];
            [[unroll]] for (int m = 0; m < 3; ++m) ACROSS(gathered[m], column_sums[m])
            int index = plane_start + (top + output_row) * pitch + output_column;
            int target_index = workgroup_id().z * target_plane + (top + output_row) * target_pitch + output_column;
            if (in_fours && outputs >= CHUNK) {
                vec4 four_x = distorted_fours[index >> 2], four_y = reference_fours[index >> 2];
                vec4 u = (four_x + four_y) - pivot.x, d = (four_x - four_y) - pivot.y, gradient;
                [[unroll]] for (int w = 0; w < CHUNK; ++w)
                    gradient[w] = weight * loss_gradient(vec3(gathered[0][w], gathered[1][w], gathered[2][w]), u[w], d[w]);
                target_fours[target_index >> 2] = gradient;
            } else {
                [[unroll]] for (int w = 0; w < CHUNK; ++w)
                    if (w < outputs) {
                        float x_at = distorted[index + w], y_at = reference[index + w];
                        target[target_index + w] = weight * loss_gradient(vec3(gathered[0][w], gathered[1][w], gathered[2][w]),
                                                                          (x_at + y_at) - pivot.x, (x_at - y_at) - pivot.y);
                    }
            }
        }
#endif
        barrier();
    }
    store_sums(float[](sum));
}
