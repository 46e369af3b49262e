// Quotients and roots that are rounded correctly in nearly every case, also on GPUs, whose own are off by some units of the last
// place: the error of the first result is known exactly, and corrects it. Include it after rounding.glsl.

// Returns a product and its error, which is exact: T. J. Dekker, "A floating-point technique for extending the available
// precision", 1971.
vec2 whole_product(float a, float b) {
    precise float product = rounded_product(a, b);
    precise float a_scaled = rounded_product(a, 4097.0), b_scaled = rounded_product(b, 4097.0);
    precise float a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
    precise float a_low = a - a_high, b_low = b - b_high;
    precise float error = rounded_product(a_high, b_high) - product;
    error += rounded_product(a_high, b_low);
    error += rounded_product(a_low, b_high);
    error += rounded_product(a_low, b_low);
    return vec2(product, error);
}

float quotient(float a, float b) {
    precise float first = a / b;
    vec2 product = whole_product(first, b);
    precise float rest = (a - product.x) - product.y;
    precise float corrected = first + rest / b;
    return corrected;
}

float root(float a) {
    if (a == 0.0) return 0.0;
    precise float first = sqrt(a);
    vec2 square = whole_product(first, first);
    precise float rest = (a - square.x) - square.y;
    precise float corrected = first + rest / (2.0 * first);
    return corrected;
}

// Returns 1 / sqrt(a), rounded once.
float inverse_root(float a) {
    precise float first = 1.0 / sqrt(a);
    vec2 product = whole_product(first, a), square = whole_product(first, product.x);
    precise float rest = ((1.0 - square.x) - square.y) - rounded_product(first, product.y);
    precise float corrected = first + rounded_product(0.5 * first, rest);
    return corrected;
}
