// Adds the eleven products of a pass of the window as libvmaf does: each product of a tap and a value is rounded to float32,
// the products are added without loss, and the sum is rounded to float32 once.
//
// A sum is two floats. `coarse` begins at a bias and stays between two powers of two, so that each addition rounds it to a
// multiple of the same number, and the digits that the addition cuts off are known without error. They go to `rest`. The order of
// the products and their sizes do not matter. docs/shaders.md has the bounds, docs/adr/0001 the reasons why less is not enough.

#include "rounding.glsl"

const int MOMENTS = 5;  // means of both planes, of their squares, and of their product

struct WindowSum {
    float coarse;
    float rest;
};

// Samples of the pyramid are -116 to 372, because the low-pass overshoots. So means stay within 1024 to 2048, and means of squares
// and products within 2^19 to 2^20. A sample beyond this range, in float frames, is added with the precision of float32.
float bias_of(int moment) {
    return moment < 2 ? 1536.0 : 786432.0;
}

WindowSum empty_sum(int moment) {
    return WindowSum(hidden(bias_of(moment)), 0.0);
}

WindowSum with_product(WindowSum sum, float product) {
    precise float coarse = sum.coarse + product;
    precise float taken = coarse - sum.coarse;
    precise float cut_off = product - taken;
    precise float rest = sum.rest + cut_off;
    return WindowSum(coarse, rest);
}

float rounded(WindowSum sum, int moment) {
    precise float coarse = sum.coarse - bias_of(moment);
    precise float total = coarse + sum.rest;
    return total;
}

float tap_product(int tap, float value) {
    return rounded_product(GAUSSIAN[tap], value);
}

// Adds the deficits of one window or of several to a total. `lost` has the digits that earlier additions have cut off (Kahan 1965): the
// deficits of a bad score are about 1, and a total of hundreds of them in float32 alone would be off in the sixth decimal.
void add_to_total(inout float total, inout float lost, float deficit) {
    precise float due = deficit - lost;
    precise float next = total + due;
    precise float taken = next - total;
    precise float now_lost = taken - due;
    total = next;
    lost = now_lost;
}

// Returns a sample, a square or a product of the samples of both planes.
float moment_of(int moment, float a, float b) {
    return moment == 0 ? a : moment == 1 ? b : moment == 2 ? a * a : moment == 3 ? b * b : a * b;
}
