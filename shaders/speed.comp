#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Blurs planes of speed_chroma: to the small planes, which are every 16th sample of every 16th row of the scaled and blurred
// planes, and from them to how far each sample is above the mean of its neighbours.
//
// The filter takes columns first. Each tap of either axis has an entry in `table`: the two samples between which its place lies
// in the plane, how far it is from the first one, and the tap. So a plane is scaled and mirrored without a step of its own, and
// every number is rounded as in libvmaf's speed.c. The entries of the columns come first, those of a sample one after the other.
// Constants: 0 workgroup size, 1 sample format, 7 whether places lie between samples. y: row. z: plane.

layout(local_size_x_id = 0) in;
layout(constant_id = 7) const uint SCALED = 0;
layout(push_constant) uniform Push {
    int width;
    int height;
    int pitch;
    int plane;
    int target_pitch;  // floats
    int target_plane;
    float scale;
    int columns;  // of the target
    int taps;
    float middle;  // of the range
    int difference;  // 1: write how far samples are above their means
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "samples.glsl"
#include "rounding.glsl"

#ifdef STAGED
layout(std430, set = 0, binding = 1) readonly restrict buffer Table { uvec4 table[]; };
uvec4 entry_at(int entry) { return table[entry]; }
#else
layout(set = 0, binding = 1) uniform usamplerBuffer table;
uvec4 entry_at(int entry) { return texelFetch(table, entry); }
#endif
layout(std430, set = 0, binding = 2) writeonly restrict buffer Target { float target[]; };

struct Place {
    int first;
    int second;
    float distance;
    float tap;
};

Place place_at(int entry) {
    uvec4 words = entry_at(entry);
    return Place(int(words.x), int(words.y), uintBitsToFloat(words.z), uintBitsToFloat(words.w));
}

float level_at(int row, int column) {
    return sample_at(row, column) - middle;
}

// Returns the sample between four others.
float interpolated(Place x, Place y, int first_row) {
    int top = first_row + y.first * pitch, bottom = first_row + y.second * pitch;
    if (SCALED == 0) return level_at(top, x.first);
    precise float near_x = 1.0 - x.distance, near_y = 1.0 - y.distance;
    precise float sum = rounded_product(rounded_product(near_y, near_x), level_at(top, x.first));
    sum += rounded_product(rounded_product(near_y, x.distance), level_at(top, x.second));
    sum += rounded_product(rounded_product(y.distance, near_x), level_at(bottom, x.first));
    sum += rounded_product(rounded_product(y.distance, x.distance), level_at(bottom, x.second));
    return sum;
}

void main() {
    int column = int(gl_GlobalInvocationID.x), row = workgroup_id().y, z = workgroup_id().z;
    if (column >= columns) return;
    precise float across = 0.0;
    for (int i = 0; i < taps; ++i) {
        Place x = place_at(column * taps + i);
        precise float down = 0.0;
        for (int j = 0; j < taps; ++j) {
            Place y = place_at((columns + row) * taps + j);
            down += rounded_product(y.tap, interpolated(x, y, z * plane));
        }
        across += rounded_product(x.tap, down);
    }
    precise float above = level_at(z * plane + row * pitch, column) - across;
    target[z * target_plane + row * target_pitch + column] = difference != 0 ? above : across;
}
