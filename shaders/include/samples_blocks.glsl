// Reads samples of a row as floats on the 0..255 scale, in blocks of 16 bytes. This is the way for CPUs.
//
// A software driver reads memory lane by lane. Its cost depends on the number of reads, not of bytes, and a uniform texel
// buffer with texels of four words is its fastest way (docs/adr/0004). Rows begin on a block. The loops count in steps of 1 to
// literal ends: Mesa unrolls no other loops, and an array that is indexed at run time goes to memory.

#include "format.glsl"

const int ROW_UNIT = 16;  // bytes

layout(set = 0, binding = 0) uniform usamplerBuffer blocks;  // four uint32 a texel

int unit_of(int column) {
    return FORMAT == FLOAT32 ? column >> 2 : FORMAT == UINT8 ? column >> 4 : column >> 3;
}

const int UNIT_WORDS = 4;

// Returns the words of a unit of a row.
uint[UNIT_WORDS] unit_at(int unit) {
    uvec4 block = texelFetch(blocks, unit);
    return uint[](block.x, block.y, block.z, block.w);
}

// Returns the sample at a column of the row that begins at block `row`.
float sample_at(int row, int column) {
    uvec4 block = texelFetch(blocks, row + unit_of(column));
    if (FORMAT == FLOAT32) return uintBitsToFloat(block[column & 3]);
    if (FORMAT == UINT8) return float(bitfieldExtract(block[column >> 2 & 3], 8 * (column & 3), 8));
    return scale * float(bitfieldExtract(block[column >> 1 & 3], 16 * (column & 1), 16));
}

// Fills `target`, a float array of length `count`, with the samples from `column + lead`. `row` is the block where the row
// begins, and `last` is the last block that may be read. Reads beyond either end of the row give some samples of the row.
// `column` is a multiple of 8. `count` and `lead` are literals; `lead` is a multiple of 4 and not above 0.
#define LOAD_SAMPLES(target, count, row, last, column, lead)                                                     \
    if (FORMAT == FLOAT32) {                                                                                     \
        [[unroll]] for (int b_ = (lead) / 4; b_ < ((lead) + (count) + 3) / 4; ++b_) {                                  \
            uvec4 block_ = texelFetch(blocks, (row) + clamp(((column) >> 2) + b_, 0, last));                     \
            [[unroll]] for (int j_ = 0; j_ < 4; ++j_) {                                                          \
                int i_ = b_ * 4 + j_ - (lead);                                                                   \
                if (i_ < (count)) target[i_] = uintBitsToFloat(block_[j_]);                                      \
            }                                                                                                    \
        }                                                                                                        \
    } else if (FORMAT == UINT8) {                                                                                \
        uint words_[((count) + 31) / 16 * 4 + 4]; /* from one block before the column's on */                    \
        [[unroll]] for (int b_ = (lead) < 0 ? -1 : 0; b_ < ((lead) + (count) + 23) / 16; ++b_) {                    \
            uvec4 block_ = texelFetch(blocks, (row) + clamp(((column) >> 4) + b_, 0, last));                     \
            [[unroll]] for (int j_ = 0; j_ < 4; ++j_) words_[b_ * 4 + j_ + 4] = block_[j_];                      \
        }                                                                                                        \
        bool upper_ = ((column) & 8) != 0;                                                                       \
        [[unroll]] for (int i_ = 0; i_ < (count); ++i_) {                                                        \
            int w_ = ((lead) + i_ + 16) / 4;                                                                     \
            target[i_] = float(bitfieldExtract(mix(words_[w_], words_[w_ + 2], upper_), 8 * (i_ & 3), 8));          \
        }                                                                                                        \
    } else {                                                                                                     \
        [[unroll]] for (int b_ = (lead) < 0 ? -1 : 0; b_ < ((lead) + (count) + 7) / 8; ++b_) {                         \
            uvec4 block_ = texelFetch(blocks, (row) + clamp(((column) >> 3) + b_, 0, last));                     \
            [[unroll]] for (int j_ = 0; j_ < 8; ++j_) {                                                          \
                int i_ = b_ * 8 + j_ - (lead);                                                                   \
                if (i_ >= 0 && i_ < (count)) target[i_] = scale * float(bitfieldExtract(block_[j_ >> 1], 16 * (j_ & 1), 16)); \
            }                                                                                                    \
        }                                                                                                        \
    }
