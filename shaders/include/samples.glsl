// Reads samples in the way of the shape that is built.
#ifdef STAGED
#include "samples_words.glsl"
#else
#include "samples_blocks.glsl"
#endif
