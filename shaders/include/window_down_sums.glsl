// Filters vertically for window_exact.glsl, with the sums of the ten unfinished windows, to which each row is added.

#define Kept Sum
const Kept NOTHING_KEPT = NO_SUM;

float completed(int quantity, const Kept kept[10], float across, float near) {
    return rounded_down(quantity, with_term(kept[0], term_down(quantity, 10, across), 10), near);
}

void keep_row(int quantity, inout Kept kept[10], float across) {
    Term terms[10];
    [[unroll]] for (int k = 0; k < 10; ++k)
        terms[k] = k < 6 ? term_down(quantity, k, across) : terms[10 - k];  // the window is symmetric
    [[unroll]] for (int k = 0; k < 9; ++k) kept[k] = with_term(kept[k + 1], terms[9 - k], 9 - k);
    kept[9] = with_term(NO_SUM, terms[0], 0);
}
