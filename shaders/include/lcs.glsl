// Computes luminance, contrast and structure of one window, as deficits: their distances from 1.
//
//   l = (2 m1 m2 + C1) / (m1^2 + m2^2 + C1)    1 - l = (m1 - m2)^2 / (m1^2 + m2^2 + C1)
//   c = (2 g + C2) / (v1 + v2 + C2)            1 - c = (v1 + v2 - 2 g) / (v1 + v2 + C2)
//   s = (cov + C3) / (g + C3)                  1 - s = (g - cov) / (g + C3),   g = sqrt(v1 v2)
//
// Deficits are small if the scores are high, so their sums in float32 lose no digits that matter. Equal windows give exactly 0,
// even if the driver's division and square root are wrong in the last place.

struct Moments {
    float mean1;
    float mean2;
    float square1;
    float square2;
    float product;
};

vec3 lcs_deficits(Moments m) {
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
    vec3 numerators = vec3(mean_difference * mean_difference, variance_sum - 2.0 * geometric, geometric - covariance);
    vec3 denominators = vec3(mean1_squared + mean2_squared + C1, variance_sum + C2, geometric + C3);
    return numerators / denominators;  // one division would be faster, but a sample far beyond its range overflows the product
}
