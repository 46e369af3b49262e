// With constant 4, a kernel also writes the map: the l c s of each window, in rows without a gap after the sums.
//
// The includer defines SIDE, the side of the window.
layout(constant_id = 4) const bool WITH_MAP = false;

void keep_window(int row, int column, float deficit) {
    partials[workgroup_id().z * frame_partials + first_window + row * (width - SIDE + 1) + column] = 1.0 - deficit;
}
#define KEEP_WINDOW(exists, row, column, deficit) if (WITH_MAP && (exists)) keep_window(row, column, deficit);
