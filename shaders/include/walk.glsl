// Has the parts that all kernels with a window share: their arguments, the reading of samples, and the place of their sums.
//
// The includer defines SUMS. Constant 1: sample format. z: frame.

layout(push_constant) uniform Push {
    int width;          // of the planes, samples
    int height;
    int pitch;          // from row to row, in the units of samples.glsl
    int plane;          // from the reference plane to the distorted one, in the same unit; frames follow each other
    int strip;          // rows of windows that one workgroup processes
    int first_partial;  // where the sums of this dispatch begin within a frame's
    int frame_partials; // floats from frame to frame
    float scale;        // of UINT16 samples
    int first_window;   // where the map begins within a frame's sums, if the kernel writes one
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "samples.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Partials { float partials[]; };

// Stores one of the SUMS sums of a workgroup. They are side by side, and workgroups follow each other in rows.
void store_partial(int sum, float value) {
    int workgroup = workgroup_id().y * int(gl_NumWorkGroups.x) + workgroup_id().x;
    partials[workgroup_id().z * frame_partials + first_partial + workgroup * SUMS + sum] = value;
}

#ifndef THREADS
#define THREADS WINDOW_WORKGROUP
#endif
#include "reduce.glsl"
