// The wavelet of adm: sums of four taps, along the columns first.

const int DOWN_BITS = SCALE == 1u ? 0 : 16;  // of a sum along a column; those of scale 0 are the bits of a sample

// Returns the row or the column that is read for one that may be beyond an edge: 1 for -1, n - 1 for n.
int reflected(int place, int size) {
    place = abs(place);
    return place < size ? place : 2 * size - 1 - place;
}

int weighted(ivec4 values, ivec4 taps) {
    return taps.x * values.x + taps.y * values.y + taps.z * values.z + taps.w * values.w;
}

// Returns the sum of taps times values, divided by 2^shift, a half rounded up. If values are `large`, the sum has 48 bits: each
// value is split, the sum of lower parts fits 32 bits, and that of upper parts may wrap, because the result fits.
int filtered(ivec4 values, ivec4 taps, int shift, bool large) {
    if (!large) return (weighted(values, taps) + (1 << shift >> 1)) >> shift;
    ivec4 low = bitfieldExtract(values, 0, shift);
    return weighted((values - low) >> shift, taps) + ((weighted(low, taps) + (1 << shift >> 1)) >> shift);
}

int filter_column(ivec4 samples, ivec4 taps) {
    return filtered(samples, taps, SCALE == 0u ? bits : DOWN_BITS, SCALE > 1u);
}

int filter_row(ivec4 columns, ivec4 taps) {
    return filtered(columns, taps, SCALE == 0u ? 16 : bits, SCALE > 0u);
}
