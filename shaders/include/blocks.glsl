// Reads planes of integers in blocks of 16 bytes, on which rows begin, in the way of the shape that is built: a CPU's fastest
// reads are those of a texel buffer.

#ifdef STAGED
layout(std430, set = 0, binding = 0) readonly restrict buffer Blocks { uvec4 blocks[]; };

uvec4 block_at(int block) {
    return blocks[block];
}

// Returns the blocks of a pitch or of a plane, which are counted in words.
int blocks_of(int words) {
    return words >> 2;
}
#else
layout(set = 0, binding = 0) uniform usamplerBuffer blocks;

uvec4 block_at(int block) {
    return texelFetch(blocks, block);
}

int blocks_of(int texels) {
    return texels;
}
#endif
