// Computes sums that equal those of libvmaf, which rounds every product to float32, adds in double and rounds the sum to
// float32.
//
// The error of each addition is carried beside the sum (TwoSum, Knuth, The Art of Computer Programming 2, 4.2.2) and added at
// the end, so that there is only one rounding. `precise` stops the compiler from fusing or reordering operations that look
// redundant.

struct ExactSum {
    float value;
    float error;
};

void add_product(inout ExactSum sum, float a, float b) {
    precise float term = a * b;
    precise float total = sum.value + term;
    precise float from_term = total - sum.value;
    precise float from_sum = total - from_term;
    precise float lost_of_term = term - from_term;
    precise float lost_of_sum = sum.value - from_sum;
    precise float error = sum.error + (lost_of_sum + lost_of_term);
    sum = ExactSum(total, error);
}

// Adds a term if it is known which of the two is larger (Fast2Sum, Dekker 1971), with three operations instead of six. If a
// picture contradicts this assumption, a small part of the error is lost.
void add_ordered(inout ExactSum sum, float term, bool term_is_larger) {
    precise float total = sum.value + term;
    precise float from_larger = total - (term_is_larger ? term : sum.value);
    precise float error = sum.error + ((term_is_larger ? sum.value : term) - from_larger);
    sum = ExactSum(total, error);
}

float rounded(ExactSum sum) {
    precise float total = sum.value + sum.error;
    return total;
}
