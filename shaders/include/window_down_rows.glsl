// Filters vertically for window_exact.glsl, with the last ten rows of the horizontal pass: a float for each row.
//
// An exact sum has two registers, so these rows take half the registers of unfinished sums. That is faster on CPUs, which have
// few, although each row is multiplied by the taps again for each window (docs/adr/0034).

#define Kept float
const Kept NOTHING_KEPT = 0.0;

float completed(int quantity, const Kept kept[10], float across, float near) {
    Sum sum = NO_SUM;
    [[unroll]] for (int k = 0; k < 10; ++k) sum = with_term(sum, term_down(quantity, k, kept[k]), k);
    return rounded_down(quantity, with_term(sum, term_down(quantity, 10, across), 10), near);
}

void keep_row(int quantity, inout Kept kept[10], float across) {
    [[unroll]] for (int k = 0; k < 9; ++k) kept[k] = kept[k + 1];
    kept[9] = across;
}
