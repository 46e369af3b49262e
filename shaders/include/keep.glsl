// With MAP, the kernel also writes the l c s of each window, in rows without a gap after the sums.
//
// The includer defines SIDE, the side of the window.
#ifdef MAP
void keep_window(int row, int column, float deficit) {
    partials[workgroup_id().z * frame_partials + first_window + row * (width - SIDE + 1) + column] = 1.0 - deficit;
}
#define KEEP_WINDOW(exists, row, column, deficit) if (exists) keep_window(row, column, deficit);
#else
#define KEEP_WINDOW(exists, row, column, deficit)
#endif
