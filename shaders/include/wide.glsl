// Integers of 64 bits as pairs of words: x has the low word, y the high one. Sums and products wrap.

uvec2 multiply(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return uvec2(low, high);
}

uvec2 add(uvec2 a, uvec2 b) {
    uint low = a.x + b.x;
    return uvec2(low, a.y + b.y + uint(low < a.x));
}

// Returns the low word of a value divided by 2^shift, for shifts of 0 to 31.
uint low_word(uvec2 value, int shift) {
    return (value.x >> shift) | (value.y << 1 << (31 - shift));
}

// Returns a signed value divided by 2^shift, a half rounded up, for shifts of 0 to 31.
uvec2 round_shift(uvec2 value, int shift) {
    value = add(value, uvec2((1u << shift) >> 1, 0u));
    return uvec2(low_word(value, shift), uint(int(value.y) >> shift));
}
