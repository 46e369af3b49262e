// The walk of the 11x11 window over the planes of a frame: arguments, where sums go, and the walk itself in the shape that the
// build asks for.
//
// The includer defines SUMS and `void accept(out float deficits[SUMS], Moments m)`. Constant 1: sample format. z: frame.
// With MAP it also keeps each window: 1 less the first of its deficits.

layout(push_constant) uniform Push {
    int width;          // of the planes, samples
    int height;
    int pitch;          // from row to row, in the units of samples.glsl
    int plane;          // from the reference plane to the distorted one, in the same unit; frames follow each other
    int strip;          // rows of windows that one workgroup walks down
    int first_partial;  // where the sums of this dispatch begin within a frame's
    int frame_partials; // floats from frame to frame
    float scale;        // of UINT16 samples
#ifdef MAP
    int first_window;   // where the map begins within a frame's sums; its rows follow each other without a gap
#endif
};

#include "samples.glsl"

layout(std430, set = 0, binding = 1) writeonly restrict buffer Partials { float partials[]; };

// The SUMS sums of a workgroup lie side by side, workgroups follow each other in rows.
void store_partial(int sum, float value) {
    int workgroup = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
    partials[int(gl_WorkGroupID.z) * frame_partials + first_partial + workgroup * SUMS + sum] = value;
}

#ifdef MAP
void keep_window(int row, int column, float deficit) {
    partials[int(gl_WorkGroupID.z) * frame_partials + first_window + row * (width - 10) + column] = 1.0 - deficit;
}
#define KEEP_WINDOW(exists, row, column, deficit) if (exists) keep_window(row, column, deficit);
#else
#define KEEP_WINDOW(exists, row, column, deficit)
#endif

#ifdef STAGED
#define THREADS WINDOW_WORKGROUP
#endif
#include "reduce.glsl"

#if defined(EXACT)
#include "window_exact.glsl"
#elif defined(STAGED)
#include "window_staged.glsl"
#else
#include "window_strip.glsl"
#endif
