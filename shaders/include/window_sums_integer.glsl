// Adds the terms of window_exact.glsl as 32-bit integers: no addition rounds, and a sum has one register. docs/adr/0034 has the
// bounds and the accuracy.
//
// A term is a product of a tap and a value, rounded to float32 as in libvmaf. The tap is multiplied by a power of two first, and
// the digits of the product after the point are cut off. Only small products have such digits, so only those of the outermost
// tap are rounded to the nearest integer.
//
// Sums may exceed 32 bits and wrap around. The samples of frames are 0 to 256, and their moments need no more than 32 bits
// without a sign. The low-pass of the pyramid overshoots: its samples are -116 to 372. There a mean of squares or products is
// known to lie near the product of the two means, and only its distance from it must fit.

const int MEAN = 0, SQUARE = 1;
const bool OVERSHOOTS = FORMAT == FLOAT32;
const int MEAN_BITS = OVERSHOOTS ? PYRAMID_MEAN_BITS : SAMPLE_MEAN_BITS;
const int ACROSS_BITS = OVERSHOOTS ? PYRAMID_SQUARE_BITS_ACROSS : SAMPLE_SQUARE_BITS;
const int DOWN_BITS = OVERSHOOTS ? PYRAMID_SQUARE_BITS_DOWN : SAMPLE_SQUARE_BITS;

#define Sum int
#define Term int
const Sum NO_SUM = 0;

Term scaled_term(int tap, float value, int bits) {
    precise float term = GAUSSIAN[tap] * float(1 << bits) * value;
    precise float nearest = term + 0.5;
    return int(tap == 0 || tap == 10 ? nearest : term);
}

Term term_across(int quantity, int tap, float value) {
    return scaled_term(tap, value, quantity == MEAN ? MEAN_BITS : ACROSS_BITS);
}

Term term_down(int quantity, int tap, float value) {
    return scaled_term(tap, value, quantity == MEAN ? MEAN_BITS : DOWN_BITS);
}

Sum with_term(Sum sum, Term term, int tap) {
    return sum + term;
}

float rounded_mean(Sum sum) {
    if (!OVERSHOOTS) return float(uint(sum)) / float(1 << MEAN_BITS);
    // Both parts are floats without rounding, so that only their sum is rounded.
    int pivot = 128 << MEAN_BITS;
    int high = ((sum - pivot) >> 8) + (pivot >> 8);
    precise float total = float(high) / float(1 << (MEAN_BITS - 8)) + float(sum & 0xff) / float(1 << MEAN_BITS);
    return total;
}

float rounded_square(Sum sum, float near, int bits) {
    if (!OVERSHOOTS) return float(uint(sum)) / float(1 << bits);
    int pivot = int(near);
    precise float total = float(pivot) + float(sum - (pivot << bits)) / float(1 << bits);
    return total;
}

float rounded_across(int quantity, Sum sum, float near) {
    return quantity == MEAN ? rounded_mean(sum) : rounded_square(sum, near, ACROSS_BITS);
}

float rounded_down(int quantity, Sum sum, float near) {
    return quantity == MEAN ? rounded_mean(sum) : rounded_square(sum, near, DOWN_BITS);
}
