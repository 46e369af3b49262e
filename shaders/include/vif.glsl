// The Gaussian filters of vif. Constant 5 is the scale, and the taps of each scale sum to 65536.

#include "edge.glsl"

layout(constant_id = 5) const uint SCALE = 0u;

const int MARGIN = 8 >> SCALE;  // samples on either side of the centre

// Returns a tap by its distance from the centre.
uint tap(int distance) {
    return VIF_TAPS[int(SCALE) * VIF_TAPS_OF_A_SCALE + distance];
}

// Returns (2^16 high + low + half) >> shift, for sums of taps times the halves of 32-bit values. Neither sum nor the result
// exceeds 32 bits; shift is 16 at most.
uint round_halves(uint high, uint low, int shift) {
    uint half_unit = (1u << shift) >> 1;
    return (high << (16 - shift)) + ((low + half_unit) >> shift);
}
