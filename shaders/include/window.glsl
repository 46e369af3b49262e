// The walk of the 11x11 window over the planes of a frame, in the shape that the build asks for.
//
// The includer defines SUMS and `void accept(out float deficits[SUMS], Moments m)`.
// With MAP it also keeps each window, by the first of its deficits.

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
