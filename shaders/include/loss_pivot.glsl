// The pivot of a neighbourhood: a level near its samples, subtracted before anything is squared.
//
// u = x + y and d = x - y each have theirs, the median of five samples spread over the neighbourhood: one sample far from the
// others, or two of the five, do not move it. It is taken of u and d and not of x and y: d is small, and keeps its last digits.
//
// Samples far beyond the images' range, and what is no number, count as its middle: where most of a neighbourhood is as bright
// as a lamp, the rest of it keeps no fewer digits than without a pivot.

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
