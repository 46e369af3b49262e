// Declares integer samples; in the staged shape `integer_at` reads one of a row. FORMAT is UINT8 or UINT16. Include it after the
// push constants, of which `sample_shift` has the bits by which samples lie higher in their type.

#include "format.glsl"

#ifdef STAGED

layout(std430, set = 0, binding = 0) readonly restrict buffer Samples { uint words[]; };

uint integer_at(int row, int column) {
    if (FORMAT == UINT8) return bitfieldExtract(words[row + (column >> 2)], 8 * (column & 3), 8);
    return bitfieldExtract(words[row + (column >> 1)], 16 * (column & 1), 16) >> sample_shift;
}

#else

layout(set = 0, binding = 0) uniform usamplerBuffer blocks;  // four uint32 a texel

#endif
