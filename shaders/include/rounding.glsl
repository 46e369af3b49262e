// Keeps the roundings of an exact sum, also if a compiler loses `precise`.
//
// SwiftShader unrolls loops with SPIRV-Tools, whose copies have no NoContraction. Then a product is fused with its addition, and
// (x + constant) - constant becomes x. So a product is made as that of a vector and a number, which is never fused, and a constant
// that is added comes from a value that the compiler does not know. Neither costs anything elsewhere.

float rounded_product(float a, float b) {
    precise vec2 products = vec2(b, 0.0) * a;
    return products.x;
}

// Returns a constant. No compiler knows that the width is positive.
float hidden(float constant) {
    return uintBitsToFloat(floatBitsToUint(constant) | (uint(width) & 0x80000000u));
}
