#version 450
// The next scale of the pyramid of averages: means of 2x2 samples.
//
//   out(x, y) = 1/4 * sum over i, j in 0..1 of in(2x + i - odd(w), 2y + j - odd(h)),   out is ceil(w/2) x ceil(h/2)
//
// An odd side has a zero before its first sample. Rows are written to their whole pitch, so that no reader meets a stray NaN.
// z: plane. Constant 0: workgroup size.

layout(local_size_x_id = 0) in;
layout(std430, set = 0, binding = 0) readonly restrict buffer Source { float source[]; };
layout(std430, set = 0, binding = 1) writeonly restrict buffer Target { float target[]; };
layout(push_constant) uniform Push {
    int width;         // of the input, samples
    int height;
    int pitch;         // from row to row, in floats
    int plane;         // from plane to plane, in floats
    int target_pitch;  // the same of the target
    int target_plane;
};

void main() {
    int column = int(gl_GlobalInvocationID.x);
    if (column >= target_pitch) return;
    int left = 2 * column - (width & 1);
    int above = 2 * int(gl_WorkGroupID.y) - (height & 1);
    float sum = 0.0;
    for (int j = 0; j < 2; ++j)
        for (int i = 0; i < 2; ++i)
            if (left + i >= 0 && left + i < width && above + j >= 0)
                sum += source[int(gl_WorkGroupID.z) * plane + (above + j) * pitch + left + i];
    target[int(gl_WorkGroupID.z) * target_plane + int(gl_WorkGroupID.y) * target_pitch + column] = 0.25 * sum;
}
