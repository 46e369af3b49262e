// Adds the terms of window_exact.glsl without loss: the error of each addition is carried beside the sum (exact.glsl).

#include "exact.glsl"

const int MEAN = 0, SQUARE = 1;  // both are added in the same way
const int LAST_GROWING = 4;      // up to this tap, each tap is larger than the sum of the taps before it

#define Sum ExactSum
#define Term float
const Sum NO_SUM = ExactSum(0.0, 0.0);

Term term_across(int quantity, int tap, float value) {
    precise float term = GAUSSIAN[tap] * value;
    return term;
}

Term term_down(int quantity, int tap, float value) {
    return term_across(quantity, tap, value);
}

Sum with_term(Sum sum, Term term, int tap) {
    if (tap == 0) return ExactSum(term, 0.0);
    add_ordered(sum, term, tap <= LAST_GROWING);
    return sum;
}

float rounded_across(int quantity, Sum sum, float near) {
    return rounded(sum);
}

float rounded_down(int quantity, Sum sum, float near) {
    return rounded(sum);
}
