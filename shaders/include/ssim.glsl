// Computes the values that SSIM sums over windows: the deficits of l c s, l, c and s, their distances from 1.

#include "constants.glsl"
#include "lcs.glsl"

const int SUMS = 4;

void accept(out float deficits[SUMS], Moments m) {
    vec3 lcs = lcs_deficits(m);
    float product = lcs.x + (1.0 - lcs.x) * (lcs.y + (1.0 - lcs.y) * lcs.z);
    deficits = float[](product, lcs.x, lcs.y, lcs.z);
}
