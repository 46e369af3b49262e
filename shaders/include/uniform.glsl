// Moves the rectangular window over the planes, and computes SSIM with its luminance, contrast and structure, as deficits:
// their distances from 1.
//
//   l = (2 m1 m2 + C1) / (m1^2 + m2^2 + C1)    1 - l = (m1 - m2)^2 / (m1^2 + m2^2 + C1)
//   c = (2 g + C2) / (v1 + v2 + C2)            1 - c = (v1 + v2 - 2 g) / (v1 + v2 + C2)
//   s = (cov + C3) / (g + C3)                  1 - s = (g - cov) / (g + C3),   g = sqrt(v1 v2)
//   c s = (2 cov + C2) / (v1 + v2 + C2)        1 - c s = vd / (v1 + v2 + C2),  vd the variance of the difference
//
// Variances are sample variances, divided by UNIFORM^2 - 1. Equal windows give exactly 0.

const int SUMS = 4;
const float SAMPLES = float(UNIFORM * UNIFORM);

// The n samples of a block of both planes: their sums, and n sum(x^2) - sum(x)^2 of the first, the second and their difference.
//
// Blocks of equal size are merged without large squares that would cancel (Chan, Golub, LeVeque 1979), so bright and nearly
// flat pictures lose no digits. `precise` is needed because equal planes must have equal scatters, and exchanged planes equal
// scores.
struct Block {
    vec2 sums;
    vec3 scatters;
};

Block merge(Block a, Block b) {
    vec2 apart = a.sums - b.sums;
    vec3 steps = vec3(apart, apart.x - apart.y);
    precise vec3 scatters = 2.0 * (a.scatters + b.scatters) + steps * steps;
    return Block(a.sums + b.sums, scatters);
}

float[SUMS] deficits(Block window) {
    vec2 means = window.sums / SAMPLES;
    precise vec3 variances = window.scatters / (SAMPLES * (SAMPLES - 1.0));  // not fused with their sum, which must be exact
    precise float variance_sum = variances.x + variances.y;
    float geometric = variances.x == variances.y ? variances.x : sqrt(variances.x) * sqrt(variances.y);
    float covariance = 0.5 * (variance_sum - variances.z);
    float apart = means.x - means.y;
    precise float squares = means.x * means.x + means.y * means.y;
    vec3 denominators = vec3(squares + C1, variance_sum + C2, geometric + C3);
    vec3 inverses = 1.0 / denominators;
    vec3 lcs = vec3(apart * apart, variance_sum - 2.0 * geometric, geometric - covariance) * inverses;
    return float[](lcs.x + (1.0 - lcs.x) * (variances.z * inverses.y), lcs.x, lcs.y, lcs.z);
}

#include "walk.glsl"

const int SIDE = UNIFORM;

#include "map.glsl"

#ifdef STAGED
#include "uniform_staged.glsl"
#else
#include "uniform_strip.glsl"
#endif
