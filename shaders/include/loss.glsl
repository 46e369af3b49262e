// Computes luminance, and contrast times structure, of one window, and their derivatives with respect to its moments.
//
// With x and y for samples of the distorted and the reference plane, u = x + y and d = x - y:
//
//   l  = (2 mx my + c1) / (mx^2 + my^2 + c1)       1 - l  = md^2 / Z,   Z = (mu^2 + md^2) / 2 + c1
//   cs = (2 cov + c2) / (vx + vy + c2)             1 - cs = vd / T,     T = (vu + vd) / 2 + c2
//
// This form filters four planes instead of five. The deficits 1 - l and 1 - cs are not differences of nearly equal numbers. If
// x = y, the deficits and the gradient are exactly 0. docs/notes/2026-11-29-derivation-of-the-losses.md derives the formulas.
//
// A pivot near the samples (loss_pivot.glsl) is subtracted from u and d before their moments are taken. Without it, the
// variances of bright, flat areas would be lost in rounding.
//
// If a sample is infinite or NaN, its windows are NaN. So each quotient has its own division: the product of large denominators
// would overflow, and its inverse, 0, would silently make the window perfect.

layout(constant_id = 2) const bool WITH_LUMINANCE = true;  // the term is l cs, else cs

struct Moments {
    float mean_u;
    float mean_d;
    float square_u;
    float square_d;
};

struct Window {
    float deficit;   // 1 - term
    vec3 by_moment;  // derivatives of the term by the means, and twice those by each square: the gradient gathers these
};

// Replaces a negative value, which only rounding can cause, by 0. NaN stays NaN. The comparison is one of integers: drivers
// turn a comparison of floats into max(), and max() returns 0 for NaN, which would make the window perfect.
float not_negative(float variance) {
    const uint minus_zero = 0x80000000u, infinity = 0x7f800000u;
    return floatBitsToUint(variance) - minus_zero < infinity ? 0.0 : variance;
}

Window loss_window(Moments m, vec2 pivot) {
    float variance_u = not_negative(m.square_u - m.mean_u * m.mean_u);
    float variance_d = not_negative(m.square_d - m.mean_d * m.mean_d);
    float mean_u = m.mean_u + pivot.x;
    float mean_d = m.mean_d + pivot.y;
    float mean_d_squared = mean_d * mean_d;
    float z = 0.5 * (mean_u * mean_u + mean_d_squared) + c1;
    float t = 0.5 * (variance_u + variance_d) + c2;
    float per_t = 1.0 / t;
    float lacks_cs = variance_d * per_t;
    Window window;
    if (WITH_LUMINANCE) {
        float per_z = 1.0 / z;
        float lacks_l = mean_d_squared * per_z;
        float l = 1.0 - lacks_l;
        float cs = 1.0 - lacks_cs;
        float twice_by_square_u = l * per_t * lacks_cs;
        float twice_by_square_d = -l * per_t * (1.0 + cs);
        float by_mean = cs * per_z * (lacks_l * mean_u - (1.0 + l) * mean_d);
        by_mean -= m.mean_u * twice_by_square_u + m.mean_d * twice_by_square_d;
        window = Window(lacks_l + l * lacks_cs, vec3(by_mean, twice_by_square_u, twice_by_square_d));
    } else {
        float twice_by_square_u = per_t * lacks_cs;
        float twice_by_square_d = twice_by_square_u - 2.0 * per_t;
        float by_mean = -(m.mean_u * twice_by_square_u + m.mean_d * twice_by_square_d);
        window = Window(lacks_cs, vec3(by_mean, twice_by_square_u, twice_by_square_d));
    }
    return window;
}

#include "loss_sample.glsl"
