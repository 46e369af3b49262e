// Moves the 11x11 window over the planes of a frame, in the shape and with the precision that are built.
//
// The includer defines SUMS, and `void accept(out float numbers[SUMS], Moments m)`, which returns what a window adds to each sum.
// The last COUNTS numbers are whole. With WITH_MAPS, the map has 1 minus the first number of each window.

#if defined(STAGED) && !defined(FAST)
#define THREADS EXACT_WORKGROUP
#endif
#include "walk.glsl"

const int SIDE = 11;
const int MARGIN = SIDE - 1;  // rows and columns by which there are fewer windows than samples

#ifdef WITH_MAPS
#include "map.glsl"
#else
#define KEEP_WINDOW(exists, row, column, deficit)
#endif

#if defined(FAST) && defined(STAGED)
#include "window_fast_staged.glsl"
#elif defined(FAST)
#include "window_fast_strip.glsl"
#elif defined(STAGED)
#include "window_exact_staged.glsl"
#else
#include "window_exact_strip.glsl"
#endif
