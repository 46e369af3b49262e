// Computes the pivot of a neighbourhood: a level near its samples, which is subtracted before samples are squared.
//
// u = x + y and d = x - y have one pivot each, the median of five samples spread over the neighbourhood. One or two outliers
// among the five do not move it. u and d have pivots, and not x and y, because d is small and so keeps its last digits.
//
// Samples far outside the range of the images, and NaN, count as the middle of the range. If most of a neighbourhood is that
// bright, the rest of it then keeps as many digits as without a pivot.

vec2 pivot_candidate(float x, float y) {
    vec2 level = vec2(x + y, x - y);
    uint limit = floatBitsToUint(2.25 * data_range);  // compared as integers, where NaN is the largest of all
    bvec2 beyond = greaterThan(floatBitsToUint(level) & 0x7fffffffu, uvec2(limit));
    return mix(level, vec2(data_range, 0.0), beyond);
}

vec2 pivot_of(const vec2 candidates[5]) {
    vec2 low = max(min(candidates[0], candidates[1]), min(candidates[2], candidates[3]));
    vec2 high = min(max(candidates[0], candidates[1]), max(candidates[2], candidates[3]));
    return max(min(low, high), min(max(low, high), candidates[4]));
}
