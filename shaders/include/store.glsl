// Returns a value that is about to be stored, or its place, as it is. Include it after the push constants.
//
// lavapipe stores lane by lane, in a loop. LLVM 15 moves the arithmetic of a value that nothing else needs into that loop, where
// it is scalar and takes up to fifteen times as long. It leaves a choice where it is, and cannot tell that this one is none.

int computed(int value) {
    return height > 0 ? value : 0;
}

uint computed(uint value) {
    return height > 0 ? value : 0u;
}

uvec4 computed(uvec4 value) {
    return height > 0 ? value : uvec4(0u);
}
