// Moves the window over the planes with libvmaf's rounding, in the shape for GPUs: a thread processes a column of windows from top to
// bottom, without barriers and without shared memory.
//
//   across  It filters eleven samples of a row horizontally. They come in words, not one by one, and those of the next row are on
//           their way meanwhile.
//   down    It adds the result to the ten unfinished windows in registers (a transposed filter, so that the six different products
//           are computed once), and completes the eleventh.
//
// The first ten rows have a loop of their own, because a test in the loop would cost an eighth of the time. Rows in shared memory, or
// several windows a thread, are slower. A row replaces the one before it at the end of an iteration: with the
// replacement between the words of a row and their samples, NVIDIA's compiler takes three to six times as long.

layout(local_size_x = EXACT_WORKGROUP) in;

#include "window_sum.glsl"

const int WORDS = FORMAT == FLOAT32 ? SIDE : FORMAT == UINT8 ? 4 : 6;  // that eleven samples span, whichever column they begin at

// Eleven samples of a row of both planes, as they are stored: the first WORDS words of each.
struct StoredRow {
    uint a[SIDE];
    uint b[SIDE];
};

StoredRow load_row(int row, int last, int column) {
    StoredRow stored;
    [[unroll]] for (int k = 0; k < SIDE; ++k) {
        int place = row + min(unit_of(column) + k, last);
        stored.a[k] = k < WORDS ? words[place] : 0u;
        stored.b[k] = k < WORDS ? words[place + plane] : 0u;
    }
    return stored;
}

// Returns the 32 bits that begin at a bit of two words.
uint bits_from(uint low, uint high, uint bit) {
    return (low >> bit) | ((high << 1) << (31u - bit));
}

// Returns the eleven samples of stored words. The first of them contains the sample of `column`.
float[SIDE] unpacked(const uint stored[SIDE], int column) {
    float samples[SIDE];
    if (FORMAT == FLOAT32) {
        [[unroll]] for (int k = 0; k < SIDE; ++k) samples[k] = uintBitsToFloat(stored[k]);
    } else if (FORMAT == UINT8) {
        [[unroll]] for (int w = 0; w < 3; ++w) {
            uint word = bits_from(stored[w], stored[w + 1], 8u * uint(column & 3));
            [[unroll]] for (int k = 4 * w; k < min(4 * w + 4, SIDE); ++k) samples[k] = float(bitfieldExtract(word, 8 * (k & 3), 8));
        }
    } else {
        [[unroll]] for (int w = 0; w < 6; ++w) {
            uint word = bits_from(stored[w], stored[w + 1], 16u * uint(column & 1));
            [[unroll]] for (int k = 2 * w; k < min(2 * w + 2, SIDE); ++k)
                samples[k] = scale * float(bitfieldExtract(word, 16 * (k & 1), 16));
        }
    }
    return samples;
}

// Filters a row horizontally.
float[MOMENTS] filter_across(const float a[SIDE], const float b[SIDE]) {
    float across[MOMENTS];
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) {
        WindowSum sum = empty_sum(m);
        [[unroll]] for (int k = 0; k < SIDE; ++k) sum = with_product(sum, tap_product(k, moment_of(m, a[k], b[k])));
        across[m] = rounded(sum, m);
    }
    return across;
}

// Adds a filtered row to the unfinished windows, and returns the moments of the one that it completes.
Moments add_row(inout WindowSum open[MOMENTS][MARGIN], const float across[MOMENTS]) {
    float means[MOMENTS];
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) {
        float products[6];  // those of taps 0 to 5; the window is symmetric
        [[unroll]] for (int k = 0; k < 6; ++k) products[k] = tap_product(k, across[m]);
        means[m] = rounded(with_product(open[m][0], products[0]), m);
        [[unroll]] for (int k = 0; k < MARGIN - 1; ++k) open[m][k] = with_product(open[m][k + 1], products[min(MARGIN - 1 - k, k + 1)]);
        open[m][MARGIN - 1] = with_product(empty_sum(m), products[0]);
    }
    return Moments(means[0], means[1], means[2], means[3], means[4]);
}

void main() {
    int column = int(gl_GlobalInvocationID.x);
    int top = workgroup_id().y * strip;
    int rows = min(strip, height - MARGIN - top);
    int row = workgroup_id().z * 2 * plane + top * pitch;
    int last_row = row + (rows + MARGIN - 1) * pitch;
    int last = unit_of(width - 1);
    bool inside = column < width - MARGIN;

    WindowSum open[MOMENTS][MARGIN];
    float sums[SUMS], lost[SUMS];
    [[unroll]] for (int m = 0; m < MOMENTS; ++m) [[unroll]] for (int k = 0; k < MARGIN; ++k) open[m][k] = empty_sum(m);
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = lost[s] = 0.0;

    StoredRow stored = load_row(row, last, column);
    for (int i = 0; i < MARGIN; ++i) {
        row += pitch;
        StoredRow following = load_row(row, last, column);
        add_row(open, filter_across(unpacked(stored.a, column), unpacked(stored.b, column)));
        stored = following;
    }
    for (int i = 0; i < rows; ++i) {
        row = min(row + pitch, last_row);
        StoredRow following = load_row(row, last, column);
        Moments moments = add_row(open, filter_across(unpacked(stored.a, column), unpacked(stored.b, column)));
        stored = following;
        float accepted[SUMS];
        accept(accepted, moments);
        KEEP_WINDOW(inside, top + i, column, accepted[0])
        [[unroll]] for (int s = 0; s < SUMS - COUNTS; ++s) add_to_total(sums[s], lost[s], accepted[s]);
        [[unroll]] for (int s = SUMS - COUNTS; s < SUMS; ++s) sums[s] += accepted[s];
    }
    [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = mix(0.0, sums[s], inside);
    store_sums(sums);
}
