// Moves the window over the planes in the shape for CPUs: one thread processes a strip of STRIP_COLUMNS columns from top to
// bottom, without barriers and without shared memory, as window_fast_strip.glsl does. For the gradient it stores three maps for each
// plane, plane after plane, each map as large as a plane.
//
// Constant 0: workgroup size, which is one subgroup.

layout(local_size_x_id = 0) in;

layout(set = 0, binding = 0) uniform usamplerBuffer distorted;  // four floats a texel
layout(set = 0, binding = 1) uniform usamplerBuffer reference;

#ifdef GRADIENT
layout(std430, set = 0, binding = 2) writeonly restrict buffer Maps { vec4 maps[]; };
#endif

#include "loss_blocks.glsl"

void main() {
    int column = int(gl_GlobalInvocationID.x) * STRIP_COLUMNS;
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - top);
    int plane_start = workgroup_id().z * plane;
    int last = (width - 1) >> 2;

    vec2 candidates[5];  // from the top of the strip to its end, alternating left and right
    [[unroll]] for (int k = 0; k < 5; ++k) {
        int at = plane_start + (top + (2 * k + 1) * rows / 10) * pitch + min((column >> 2) + (k & 1), last);
        candidates[k] = pivot_candidate(block_of(distorted, at, 0).x, block_of(reference, at, 0).x);
    }
    vec2 pivot = pivot_of(candidates);
#ifdef GRADIENT
    // Threads gather from the windows of other threads, so all maps use one pivot, that of the plane.
    vec2 from_plane = pivot - plane_pivot(plane_start);
#endif

    bool inside[SPAN], exists[STRIP_COLUMNS];
    [[unroll]] for (int i = 0; i < SPAN; ++i) inside[i] = column + i >= 8 && column + i < width + 8;
    [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) exists[c] = column + c >= margin && column + c < width - margin;

    float open[4][10][STRIP_COLUMNS], sum = 0.0;
    [[unroll]] for (int m = 0; m < 4; ++m)
        [[unroll]] for (int k = 0; k < 10; ++k)
            [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) open[m][k][c] = 0.0;

    for (int i = -10; i < rows; ++i) {
        int row = top + i + 5;
        bool row_inside = row >= 0 && row < height;
        int row_start = plane_start + clamp(row, 0, height - 1) * pitch;
        float u[SPAN], d[SPAN], done[4][STRIP_COLUMNS];
        LOAD_SPAN(u, distorted, row_start, last, column)
        LOAD_SPAN(d, reference, row_start, last, column)
        [[unroll]] for (int s = 0; s < SPAN; ++s) {
            float x = row_inside && inside[s] ? u[s] : 0.0;
            float y = row_inside && inside[s] ? d[s] : 0.0;
            u[s] = (x + y) - pivot.x;
            d[s] = (x - y) - pivot.y;
        }
        ADD_ROW(done[0], open[0], u)
        ADD_ROW(done[1], open[1], d)
        [[unroll]] for (int s = 0; s < SPAN; ++s) {
            u[s] *= u[s];
            d[s] *= d[s];
        }
        ADD_ROW(done[2], open[2], u)
        ADD_ROW(done[3], open[3], d)
        if (i < 0) continue;
        bool row_exists = top + i >= margin && top + i < height - margin;
        vec3 by_moment[STRIP_COLUMNS];
        [[unroll]] for (int c = 0; c < STRIP_COLUMNS; ++c) {
            Window window = loss_window(Moments(done[0][c], done[1][c], done[2][c], done[3][c]), pivot);
            sum += row_exists && exists[c] ? window.deficit : 0.0;
#ifdef GRADIENT
            window.by_moment.x -= from_plane.x * window.by_moment.y + from_plane.y * window.by_moment.z;
#endif
            by_moment[c] = row_exists && exists[c] ? window.by_moment : vec3(0.0);
        }
#ifdef GRADIENT
        [[unroll]] for (int m = 0; m < 3; ++m) {
            int index = (workgroup_id().z * 3 + m) * target_plane + (top + i) * target_pitch + column;
            [[unroll]] for (int part = 0; part < STRIP_COLUMNS / 4; ++part)
                if (column + 4 * part < target_pitch)
                    maps[(index >> 2) + part] = vec4(by_moment[4 * part][m], by_moment[4 * part + 1][m],
                                                     by_moment[4 * part + 2][m], by_moment[4 * part + 3][m]);
        }
#endif
    }
    store_sums(float[](sum));
}
