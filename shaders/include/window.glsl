// Moves the 11x11 window over the planes of a frame, in the shape that is built.
//
// The includer defines SUMS and `void accept(out float deficits[SUMS], Moments m)`.
// With MAP it also writes the map: 1 minus the first deficit of each window.

#include "walk.glsl"

const int SIDE = 11;

#include "keep.glsl"

#if defined(EXACT)
#include "window_exact.glsl"
#elif defined(STAGED)
#include "window_staged.glsl"
#else
#include "window_strip.glsl"
#endif
