// The statistic of a window of vif from its moments, in integers.
//
//   num = log2(1 + g^2 v1 / (v2 - g c + n)), den = log2(1 + v1 / n), g = c / v1
//
// v1 and v2 are the variances of the reference and of the distorted plane, c the covariance, n the noise, all in units of 2^-16.
// Where v1 < n the window is flat, and only v2 is added.

const float EPSILON = 6.5536e-6;

struct VifSums {
    uint num_log;    // 2048 log2
    uint den_log;
    uint flat_low;   // the halves of the distorted variances of flat windows
    uint flat_high;
    uint flat_count;
};

// Returns 2048 log2(value) of a 64-bit value of 17 bits at least, by its 16 leading bits.
uint log2_of(uint high, uint low) {
    int shift = (high == 0u ? findMSB(low) : 32 + findMSB(high)) - 15;
    uint leading = shift == 32 ? high : shift > 32 ? high >> (shift - 32) : (low >> shift) | (high << (32 - shift));
    int place = int(leading & 0x7fffu);  // the table begins at 32768
#ifdef STAGED
    uint word = logarithm_words[place >> 1];
#else
    uint word = texelFetch(logarithm_words, place >> 3)[place >> 1 & 3];
#endif
    return bitfieldExtract(word, 16 * (place & 1), 16) + 2048u * uint(shift);
}

// Returns the product of two means, which are below 2^32, rounded to units of 2^-32.
uint multiply_means(uint a, uint b) {
    uint high, low;
    umulExtended(a, b, high, low);
    return high + (low >> 31);
}

// Returns floor(c^2 / v) and the rest, for c < 2^31, 2^17 <= v < 2^31 and a quotient below 2^32.
//
// The float32 quotient is wrong by less than 2^12: conversions and products are wrong by at most 2^-24 of themselves, and the
// reciprocal by 2.5 units of its last place. Its own rest, without the 12 lowest bits, corrects it to within one.
uint divide_square(uint c, uint v, out uint rest) {
    uint high, low, product_high, product_low, borrow;
    umulExtended(c, c, high, low);
    float inverse = 1.0 / float(v);
    uint quotient = uint(min(float(c) * inverse * float(c), 4294967040.0));

    umulExtended(quotient, v, product_high, product_low);
    rest = usubBorrow(low, product_low, borrow);
    int rest_high = int(high - product_high - borrow);
    quotient += uint(int(floor(float((rest_high << 20) | int(rest >> 12)) * (inverse * 4096.0))));

    umulExtended(quotient, v, product_high, product_low);
    rest = usubBorrow(low, product_low, borrow);
    rest_high = int(high - product_high - borrow);
    if (rest_high < 0) {  // one too many
        --quotient;
        rest += v;
    } else if (rest >= v) {
        ++quotient;
        rest -= v;
    }
    return quotient;
}

void add_window(inout VifSums sums, uint mean1, uint mean2, uvec3 squares) {
    int v1 = int(squares.x - multiply_means(mean1, mean1));
    uint v2 = uint(max(int(squares.y - multiply_means(mean2, mean2)), 0));
    int c = int(squares.z - multiply_means(mean1, mean2));
    if (v1 < VIF_NOISE) {
        sums.flat_low += v2 & 0xffffu;
        sums.flat_high += v2 >> 16;
        ++sums.flat_count;
        return;
    }
    sums.den_log += log2_of(0u, uint(v1 + VIF_NOISE)) - 2048u * 17u;
    if (c <= 0 || v2 == 0u) return;

    // libvmaf divides by v1 + EPSILON in doubles, and truncates v2 - g c and g^2 v1. Both are q + rest / v1 less a little.
    uint rest;
    uint q = divide_square(uint(c), uint(v1), rest);
    float less = float(q) * EPSILON;
    uint taken = q + uint(float(rest) >= less);
    uint residual = (v2 > taken ? v2 - taken : 0u) + uint(VIF_NOISE);
    uint gained_high = 0u, gained_low = q - uint(float(rest) < 2.0 * less);
    uint limit_high, limit_low;  // of c: gain_limit v1
    umulExtended(uint(gain_limit), uint(v1), limit_high, limit_low);
    if (limit_high == 0u && uint(c) > limit_low) umulExtended(limit_low, uint(gain_limit), gained_high, gained_low);
    uint carry;
    uint total_low = uaddCarry(gained_low, residual, carry);
    sums.num_log += log2_of(gained_high + carry, total_low) - log2_of(0u, residual);
}

void store_window_sums(VifSums sums) {
    uint high = sums.flat_high + (sums.flat_low >> 16);
    store_sums(float[](
        float(sums.num_log & 0xffffu), float(sums.num_log >> 16),
        float(sums.den_log & 0xffffu), float(sums.den_log >> 16),
        float(sums.flat_low & 0xffffu), float(high & 0xffffu), float(high >> 16), float(sums.flat_count)
    ));
}
