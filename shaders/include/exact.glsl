// Sums that come out as those of libvmaf, which rounds every product to float32, adds in double and rounds the sum to float32.
//
// The error of each addition is kept beside the sum (TwoSum, Knuth, The Art of Computer Programming 2, 4.2.2) and added at the
// end, which leaves one rounding. `precise` keeps the compiler from fusing or reordering what looks like nothing.

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

// The same where it is known which of the two is the larger (Fast2Sum, Dekker 1971): four operations instead of seven. Where a
// picture proves the guess wrong, what is kept of the error is only nearly all of it.
void add_ordered(inout ExactSum sum, float a, float b, bool term_is_larger) {
    precise float term = a * b;
    precise float total = sum.value + term;
    precise float from_larger = total - (term_is_larger ? term : sum.value);
    precise float error = sum.error + ((term_is_larger ? sum.value : term) - from_larger);
    sum = ExactSum(total, error);
}

float rounded(ExactSum sum) {
    precise float total = sum.value + sum.error;
    return total;
}
