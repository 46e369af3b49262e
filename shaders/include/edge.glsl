// Returns the place that is read for one that may be beyond an edge: 1 for -1, n - 2 for n. The edge itself is not repeated.
int mirrored(int place, int size) {
    place = abs(place);
    return place < size ? place : 2 * size - 2 - place;
}
