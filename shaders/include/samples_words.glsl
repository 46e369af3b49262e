// Reads samples of a row as floats on the 0..255 scale, word by word from a storage buffer. This is the way for GPUs, whose
// neighbouring threads read neighbouring words together.
//
// This file has the same names as samples_blocks.glsl, but counts rows in words of 4 bytes.

#include "format.glsl"

const int ROW_UNIT = 4;  // bytes

layout(std430, set = 0, binding = 0) readonly restrict buffer Samples { uint words[]; };

int unit_of(int column) {
    return FORMAT == FLOAT32 ? column : FORMAT == UINT8 ? column >> 2 : column >> 1;
}

const int UNIT_WORDS = 1;

// Returns the words of a unit of a row.
uint[UNIT_WORDS] unit_at(int unit) {
    return uint[](words[unit]);
}

// Returns the sample at a column of the row that begins at word `row`.
float sample_at(int row, int column) {
    uint word = words[row + unit_of(column)];
    if (FORMAT == FLOAT32) return uintBitsToFloat(word);
    if (FORMAT == UINT8) return float(bitfieldExtract(word, 8 * (column & 3), 8));
    return scale * float(bitfieldExtract(word, 16 * (column & 1), 16));
}

// Returns four samples from a column, which is a multiple of 4.
vec4 four_samples_at(int row, int column) {
    int first = row + unit_of(column);
    if (FORMAT == FLOAT32) return uintBitsToFloat(uvec4(words[first], words[first + 1], words[first + 2], words[first + 3]));
    if (FORMAT == UINT8) {
        uint word = words[first];
        return vec4(bitfieldExtract(word, 0, 8), bitfieldExtract(word, 8, 8), bitfieldExtract(word, 16, 8), word >> 24);
    }
    uint low = words[first], high = words[first + 1];
    return scale * vec4(low & 0xffffu, low >> 16, high & 0xffffu, high >> 16);
}

// Fills `target`, a float array of length `count`, with the samples from `column + lead`. `row` is the word where the row
// begins, and `last` is the last word that may be read. Reads beyond either end of the row give some samples of the row.
// `column` is a multiple of 4. `count` and `lead` are literals; `lead` is a multiple of 4 and not above 0.
#define LOAD_SAMPLES(target, count, row, last, column, lead)                                                     \
    if (FORMAT == FLOAT32) {                                                                                     \
        [[unroll]] for (int i_ = 0; i_ < (count); ++i_)                                                          \
            target[i_] = uintBitsToFloat(words[(row) + clamp((column) + (lead) + i_, 0, last)]);                 \
    } else if (FORMAT == UINT8) {                                                                                \
        [[unroll]] for (int w_ = 0; w_ < ((count) + 3) / 4; ++w_) {                                              \
            uint word_ = words[(row) + clamp((((column) + (lead)) >> 2) + w_, 0, last)];                         \
            [[unroll]] for (int j_ = 0; j_ < 4; ++j_) {                                                          \
                int i_ = w_ * 4 + j_;                                                                            \
                if (i_ < (count)) target[i_] = float(bitfieldExtract(word_, 8 * j_, 8));                         \
            }                                                                                                    \
        }                                                                                                        \
    } else {                                                                                                     \
        [[unroll]] for (int w_ = 0; w_ < ((count) + 1) / 2; ++w_) {                                              \
            uint word_ = words[(row) + clamp((((column) + (lead)) >> 1) + w_, 0, last)];                         \
            [[unroll]] for (int j_ = 0; j_ < 2; ++j_) {                                                          \
                int i_ = w_ * 2 + j_;                                                                            \
                if (i_ < (count)) target[i_] = scale * float(bitfieldExtract(word_, 16 * j_, 16));               \
            }                                                                                                    \
        }                                                                                                        \
    }
