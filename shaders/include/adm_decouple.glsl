// Decouples a place of the bands of adm: the part of the distorted plane that restores the reference, and the addition. Both are
// weighted, and each masks the other. Constant 5 is the scale; constant 6 is 1 if additions are masked too. docs/shaders.md has the bounds.

const int BANDS = 3;  // horizontal, vertical, diagonal

struct Part {
    uint magnitudes[BANDS];  // of the bands that are masked, weighted
    uint neighbour;          // a thirtieth of those that mask them, which its neighbours add to their thresholds
    uint own;                // a fifteenth of them, less `neighbour`
};

struct Place {
    Part restored;
    Part added;  // for aim
};

// Returns floor(2^30 / divisor) for 1 to 2^15. The float32 quotient is wrong by less than 2^-21 of itself.
uint reciprocal(uint divisor) {
    float inverse = 1.0 / float(divisor);
    uint quotient = uint(1073741824.0 * inverse);
    int rest = int(1073741824u - quotient * divisor);
    quotient += uint(int(floor(float(rest) * inverse)));
    rest = int(1073741824u - quotient * divisor);
    return quotient + uint(rest >> 31) + uint(rest >= int(divisor));
}

// Returns distorted / reference in units of 2^-15, at most 2^15, from magnitudes of values with one sign.
uint gain_of(uint reference, uint distorted) {
    distorted = min(distorted, 2u * reference);  // the gain is at its limit, and the product fits
    if (SCALE == 0u) return min((reciprocal(max(reference, 1u)) * distorted + 16384u) >> 15, 32768u);
    int shift = max(findMSB(reference) - 14, 0);
    uint divisor = (reference + ((1u << shift) >> 1)) >> shift;
    uvec2 product = add(multiply(reciprocal(max(divisor, 1u)), distorted), uvec2(16384u << shift, 0u));
    return min(low_word(product, 15 + shift), 32768u);
}

// Returns the 24 leading bits of a value, rounded to even as float32 is, and the power of two that they are multiplied by.
uint leading_bits(uvec2 value, out int exponent) {
    exponent = value.y == 0u ? 8 : 40;
    value = value.y == 0u ? uvec2(0u, value.x) : value;
    int zeros = 31 - findMSB(value.y);
    exponent -= zeros;
    value = uvec2(value.x << zeros, (value.y << zeros) | (value.x >> 1 >> (31 - zeros)));
    uint leading = value.y >> 8, rest = value.y & 0xffu;
    return leading + uint(rest > 128u || rest == 128u && (value.x != 0u || (leading & 1u) != 0u));
}

uvec2 signed_product(int a, int b) {
    uvec2 product = multiply(uint(abs(a)), uint(abs(b)));
    return (a ^ b) < 0 ? add(~product, uvec2(1u, 0u)) : product;
}

// Returns whether i^2 >= cos^2 s t, as libvmaf compares doubles of i, s, t, which are float32: for values that nearly agree, so
// that i is positive. The left side has 48 bits, the right side 72, of which a double has 53.
bool compare_exactly(ivec2 gradient1, ivec2 gradient2) {
    int e, e1, e2;
    uint inner = leading_bits(
        add(signed_product(gradient1.x, gradient2.x), signed_product(gradient1.y, gradient2.y)), e
    );
    uint square1 = leading_bits(
        add(signed_product(gradient1.x, gradient1.x), signed_product(gradient1.y, gradient1.y)), e1
    );
    uint square2 = leading_bits(
        add(signed_product(gradient2.x, gradient2.x), signed_product(gradient2.y, gradient2.y)), e2
    );

    // Both sides have 2^-26 as their unit. The lowest 24 bits of the left side are 0, so that the half that a double of the right
    // side may be rounded down by fits there.
    int shift = clamp(26 + 2 * e - e1 - e2, 24, 28);
    uvec2 left = multiply(inner, inner);
    uvec3 left3 = uvec3(left.x << shift, (left.y << shift) | (left.x >> (32 - shift)), left.y >> (32 - shift));
    left3.x |= 1u << (findMSB(left.y) + 32 + shift - 53);
    uvec2 right = multiply(square1, square2);
    uvec2 low = multiply(right.x, ADM_COS_SQUARED << 2);
    uvec2 high = add(multiply(right.y, ADM_COS_SQUARED << 2), uvec2(low.y, 0u));
    if (left3.z != high.y) return left3.z > high.y;
    return left3.y != high.x ? left3.y > high.x : left3.x >= low.x;
}

// Returns whether the gradients of both planes, (horizontal, vertical), differ by less than a degree.
bool nearly_parallel(ivec2 gradient1, ivec2 gradient2) {
    vec2 one = vec2(gradient1), two = vec2(gradient2);
    float inner = one.x * two.x + one.y * two.y;
    float left = inner * inner;
    float right = (one.x * one.x + one.y * one.y) * (two.x * two.x + two.y * two.y) * (float(ADM_COS_SQUARED) / 16777216.0);
    bool parallel = inner >= 0.0 && left >= right;
    // Sums and products of floats are wrong by less than 2^-19.
    if (inner > 0.0 && abs(left - right) < right * (1.0 / 262144.0)) parallel = compare_exactly(gradient1, gradient2);
    return parallel;
}

// Returns round(value factor / 2^28) of a positive or negated value.
uint weigh(uint value, uint factor, bool negated) {
    uvec2 product = add(multiply(value, factor), uvec2((1u << 27) - uint(negated), 0u));
    return low_word(product, 28);
}

// Returns the high word of a product less 2^31, plus 1.
uint portion(uint value, uint factor) {
    uvec2 product = multiply(value, factor);
    return product.y + (product.x >> 31);
}

// Adds the magnitude of a band that masks a part.
void mask(inout Part part, uint size) {
    uint neighbour, own;
    if (SCALE == 0u) {
        neighbour = (ADM_THIRTIETH[0] * size + 2048u) >> 12;
        own = uint(bitfieldExtract(int((ADM_FIFTEENTH[0] * size + 2048u) >> 12), 0, 16));
    } else {
        neighbour = portion(size, ADM_THIRTIETH[1]) - 1u;
        own = portion(size, ADM_FIFTEENTH[1]) - 1u;
    }
    part.neighbour += neighbour;
    part.own += own - neighbour;
}

// Returns the magnitude of a weighted sample of scale 0.
uint weighted_size(int value, uint weight, int band) {
    return uint(abs((value * int(weight) + (band == 2 ? 65535 : 16384)) >> (band == 2 ? 17 : 15)));
}

void decouple_band(inout Place place, int band, int reference, int distorted, bool parallel) {
    bool negative = reference < 0;
    uint magnitude = uint(abs(reference));
    int along = negative ? -distorted : distorted;  // the distorted sample, positive if it has the sign of the reference
    uint kept = uint(max(along, 0));
    uint gain = gain_of(magnitude, kept);
    uint weight = uint(band == 2 ? diagonal_weight : edge_weight);

    if (SCALE == 0u) {
        uint restored = (gain * magnitude + 16384u - uint(negative)) >> 15;
        restored = parallel ? min(restored * uint(gain_limit), kept) : restored;
        int addition = along - int(restored);
        place.restored.magnitudes[band] = restored * weight;
        mask(place.restored, weighted_size(negative ? -addition : addition, weight, band));
        if (AIM != 0u) {
            place.added.magnitudes[band] = uint(abs(addition)) * weight;
            mask(place.added, weighted_size(negative ? -int(restored) : int(restored), weight, band));
        }
    } else {
        uint restored = gain * (magnitude >> 15) + ((gain * (magnitude & 0x7fffu) + 16384u - uint(negative)) >> 15);
        if (gain_limit > 1) {
            uvec2 enhanced = multiply(restored, uint(gain_limit));
            enhanced.x = enhanced.y == 0u ? enhanced.x : 0xffffffffu;
            restored = parallel ? min(enhanced.x, kept) : restored;
        } else {
            restored = parallel ? min(restored, kept) : restored;
        }
        int addition = along - int(restored);
        uint added = weigh(uint(abs(addition)), weight, negative ? addition > 0 : addition < 0);
        uint kept_part = weigh(restored, weight, negative);
        place.restored.magnitudes[band] = kept_part;
        mask(place.restored, added);
        if (AIM != 0u) {
            place.added.magnitudes[band] = added;
            mask(place.added, kept_part);
        }
    }
}

Place decouple(ivec3 reference, ivec3 distorted) {
    Part nothing = Part(uint[](0u, 0u, 0u), 0u, 0u);
    Place place = Place(nothing, nothing);
    bool parallel = nearly_parallel(reference.xy, distorted.xy);
    [[unroll]] for (int band = 0; band < BANDS; ++band) {
        decouple_band(place, band, reference[band], distorted[band], parallel);
    }
    return place;
}

// Returns the cube of a weighted band above its threshold. All words wrap as libvmaf's.
uvec2 masked_cube(uint magnitude, uint threshold, int band) {
    if (SCALE == 0u) threshold <<= band == 2 ? 12 : 10;
    int square_shift = SCALE == 0u && band < 2 ? 29 : 30;
    uint excess = uint(max(int(magnitude - threshold), 0));
    uint square = low_word(add(multiply(excess, excess), uvec2(1u << (square_shift - 1), 0u)), square_shift);
    uvec2 cube = multiply(square, excess);
    cube.y -= int(square) < 0 ? excess : 0u;  // of a square that has wrapped
    return round_shift(cube, mask_shift + int(SCALE == 0u && band == 2));
}

// Returns the cube of a band of the reference.
uvec2 band_cube(int value) {
    uint magnitude = uint(abs(value));
    if (SCALE == 0u) return multiply(magnitude * magnitude, magnitude);
    uint square = low_word(multiply(magnitude, magnitude), 46 - bits) + 1u;  // in place of a half
    return round_shift(multiply(square, magnitude), band_shift);
}
