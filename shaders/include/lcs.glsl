// Computes luminance, contrast and structure of one window, and their distances from 1.
//
//   l = (2 m1 m2 + C1) / (m1^2 + m2^2 + C1)    1 - l = (m1 - m2)^2 / (m1^2 + m2^2 + C1)
//   c = (2 g + C2) / (v1 + v2 + C2)            1 - c = (v1 + v2 - 2 g) / (v1 + v2 + C2)
//   s = (cov + C3) / (g + C3)                  1 - s = (g - cov) / (g + C3),   g = sqrt(v1 v2)
//
// Neither form subtracts from 1, so a value near 0 keeps its digits in the first one, and a value near 1 in the second. Equal windows
// have distances of exactly 0, even if the driver's division and square root are wrong in the last place.

struct Moments {
    float mean1;
    float mean2;
    float square1;
    float square2;
    float product;
};

struct Lcs {
    vec3 values;        // numerators of l, c, s
    vec3 deficits;      // numerators of 1 - l, 1 - c, 1 - s
    vec3 denominators;  // of both
};

Lcs lcs_of(Moments m) {
    precise float mean1_squared = m.mean1 * m.mean1;
    precise float mean2_squared = m.mean2 * m.mean2;
    precise float mean_product = m.mean1 * m.mean2;
    precise float variance1 = max(0.0, m.square1 - mean1_squared);
    precise float variance2 = max(0.0, m.square2 - mean2_squared);
    precise float covariance = m.product - mean_product;
    // Roots first: with a sample far beyond its range, the product of the variances would be infinite.
    float geometric = mix(sqrt(variance1) * sqrt(variance2), variance1, variance1 == variance2);
    // This guard is libvmaf's: in a flat window, only rounding makes the covariance negative.
    covariance = mix(covariance, 0.0, covariance < 0.0 && geometric <= 0.0);
    float mean_difference = m.mean1 - m.mean2;
    float variance_sum = variance1 + variance2;
    return Lcs(
        vec3(2.0 * mean_product + C1, 2.0 * geometric + C2, covariance + C3),
        vec3(mean_difference * mean_difference, variance_sum - 2.0 * geometric, geometric - covariance),
        vec3(mean1_squared + mean2_squared + C1, variance_sum + C2, geometric + C3)
    );
}
