// Moves the window of the losses over two planes. The file has the arguments, the place of the sums, and the loop of the shape
// that is built. The includer defines GRADIENT if the gradient is computed as well.
//
// Samples beyond the border are 0. Windows are centred on every sample. Windows nearer than `margin` to a border do not count.
// z: plane. Constants: 0 workgroup size (strip), 2 the term.

layout(push_constant) uniform Push {
    int width;         // samples
    int height;
    int pitch;         // from row to row: floats in the staged shape, blocks of four in the strip shape
    int plane;         // from plane to plane, in the same unit
    int target_pitch;  // of the gradient, or of the maps, in floats
    int target_plane;
    int strip;         // rows that one workgroup processes
    int margin;
    int first_partial; // where the sums of this dispatch begin within a plane's
    int plane_partials;// floats from plane to plane
    float c1;
    float c2;
    float weight;      // of the gradient
    float data_range;
    int first_workgroup_y;  // where this part of the dispatch begins, see workgroup.glsl
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "loss.glsl"
#include "loss_pivot.glsl"

#ifdef GRADIENT
layout(std430, set = 0, binding = 3) writeonly restrict buffer Partials { float partials[]; };
#else
layout(std430, set = 0, binding = 2) writeonly restrict buffer Partials { float partials[]; };
#endif

const int SUMS = 1;

void store_partial(int sum, float value) {
    int workgroup = workgroup_id().y * int(gl_NumWorkGroups.x) + workgroup_id().x;
    partials[workgroup_id().z * plane_partials + first_partial + workgroup] = value;
}

#ifdef STAGED
#define THREADS LOSS_WORKGROUP
#endif
#include "reduce.glsl"

#ifdef STAGED
#include "loss_staged.glsl"
#else
#include "loss_strip.glsl"
#endif
