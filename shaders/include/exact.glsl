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

float rounded(ExactSum sum) {
    precise float total = sum.value + sum.error;
    return total;
}
