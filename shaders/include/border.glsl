// Applies the one border rule: symmetric, with the edge sample repeated. The index may be up to one size outside.
int mirror(int index, int size) {
    index = index < 0 ? -1 - index : index;
    return index >= size ? 2 * size - 1 - index : index;
}
