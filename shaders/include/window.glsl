// The walk of the 11x11 window over the planes of a frame, in the shape that the build asks for.
//
// The includer defines SUMS and `void accept(out float deficits[SUMS], Moments m)`.
// With MAP it also keeps each window: 1 less the first of its deficits.

#include "walk.glsl"

#ifdef MAP
void keep_window(int row, int column, float deficit) {
    partials[int(gl_WorkGroupID.z) * frame_partials + first_window + row * (width - 10) + column] = 1.0 - deficit;
}
#define KEEP_WINDOW(exists, row, column, deficit) if (exists) keep_window(row, column, deficit);
#else
#define KEEP_WINDOW(exists, row, column, deficit)
#endif

#if defined(EXACT)
#include "window_exact.glsl"
#elif defined(STAGED)
#include "window_staged.glsl"
#else
#include "window_strip.glsl"
#endif
