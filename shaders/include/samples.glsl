// How samples are read, in the shape that the build asks for.
#ifdef STAGED
#include "samples_words.glsl"
#else
#include "samples_blocks.glsl"
#endif
