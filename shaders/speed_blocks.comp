#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Computes the statistics of the blocks of 5x5 samples of a small plane of speed_chroma, less the means of the neighbours.
//
//   covariance of the 25 places ──► eigenvalues: Householder's reflections, then rotations of the tridiagonal matrix
//                    └────────────► R of Q R = covariance, and Q' ──► variance of each block: x' covariance^-1 x / 25
//
// Sums and steps are those of libvmaf's speed.c, in its order and rounded to float32, except sums in double precision: those of
// the covariance have two floats here. A workgroup has a plane. Its partials are the 25 eigenvalues, 1 if the covariance is
// singular, and the variances. The workgroup size is fixed, and there are no constants. z: plane.

#include "integer_constants.glsl"

#ifdef STAGED
const int THREADS = SPEED_STAGED_WORKGROUP;
layout(local_size_x = SPEED_STAGED_WORKGROUP) in;
#else
const int THREADS = SPEED_WORKGROUP;
layout(local_size_x = SPEED_WORKGROUP) in;
#endif
layout(push_constant) uniform Push {
    int width;  // of the small planes
    int height;
    int pitch;
    int plane;
    int frame_partials;
    int first_workgroup_y;
    int first_workgroup_z;
};

#include "workgroup.glsl"
#include "rounding.glsl"
#include "exact_division.glsl"

#ifdef STAGED
layout(std430, set = 0, binding = 0) readonly restrict buffer Contrasts { float contrasts[]; };

float contrast_at(int row, int column) {
    return contrasts[workgroup_id().z * plane + row * pitch + column];
}
#else
layout(set = 0, binding = 0) uniform usamplerBuffer contrasts;

float contrast_at(int row, int column) {
    return uintBitsToFloat(texelFetch(contrasts, workgroup_id().z * plane + row * pitch + (column >> 2))[column & 3]);
}
#endif
layout(std430, set = 0, binding = 1) writeonly restrict buffer Partials { float partials[]; };

const int BLOCK = 5;
const int N = BLOCK * BLOCK;
const float SMALL = 1e-6;
const int MAX_ITERATIONS = 500;
const int TURNS = N * (BLOCK + 1) / 2;         // of the covariance: a place, and a row of places up to its own
const int PARTS = max(THREADS / TURNS, 1);     // of the rows of the plane, each with threads of its own
const int TURNS_AT_ONCE = THREADS / PARTS;
const int AT_ONCE = SPEED_SAMPLES_AT_ONCE;
const int BLOCKS_AT_ONCE = SPEED_WORKGROUP;

shared float covariance[N][N];
shared float left[N][N];      // the matrix that is reduced
shared float rotated[N][N];   // Q'
shared float vector[N];
shared float image[N];
shared float diagonal[N];
shared float below[N];
shared float targets[N * BLOCKS_AT_ONCE];  // (places, threads); before that, sums of a part
shared bool singular;

int thread_index() {
    return int(gl_LocalInvocationIndex);
}

// Returns N. No compiler knows it, and unrolls loops that end there: lavapipe would take ten seconds.
int size_of_blocks() {
    return N + min(width, 0);
}

// -- covariance -----------------------------------------------------------------------------------------------------------

// Returns a sum and its error, which is exact: D. E. Knuth, "The art of computer programming", 4.2.2.
vec2 whole_sum(float a, float b) {
    precise float sum = a + b;
    precise float part = sum - a;
    precise float error = (a - (sum - part)) + (b - part);
    return vec2(sum, error);
}

// Adds the product of two numbers of two floats each.
vec2 add_product(vec2 total, vec2 a, vec2 b) {
    vec2 product = whole_product(a.x, b.x);
    precise float low = product.y + (rounded_product(a.x, b.y) + rounded_product(a.y, b.x));
    vec2 sum = whole_sum(total.x, product.x);
    precise float rest = sum.y + (total.y + low);
    return whole_sum(sum.x, rest);
}

// Returns a number of two floats divided by a whole one, as a float.
float divided(vec2 total, float divisor) {
    precise float first = total.x / divisor;
    vec2 product = whole_product(first, divisor);
    precise float rest = ((total.x - product.x) - product.y) + total.y;
    precise float corrected = first + rest / divisor;
    return corrected;
}

void make_covariance(int rows, int columns) {
    float count = float(rows * columns);
    for (int part = thread_index(); part < size_of_blocks(); part += THREADS) {
        precise float sum = 0.0;
        for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; x += AT_ONCE) {
                [[unroll]] for (int i = 0; i < AT_ONCE; ++i) {
                    if (x + i < columns) sum += contrast_at(y + part / BLOCK, x + i + part % BLOCK);
                }
            }
        vector[part] = quotient(sum, count);
    }
    barrier();
    // A turn has a place of the blocks and a row of places, so that a step along the plane reads two samples for five products.
    int part = thread_index() / TURNS_AT_ONCE;
    for (int first_turn = 0; first_turn < TURNS; first_turn += TURNS_AT_ONCE) {
        int place = thread_index() % TURNS_AT_ONCE, turn = first_turn + place;
        int block_row = int(turn >= 5) + int(turn >= 15) + int(turn >= 30) + int(turn >= 50);  // a row of i has one j row more
        int rest = turn - BLOCK * block_row * (block_row + 1) / 2;
        int i = BLOCK * block_row + rest % BLOCK, row = rest / BLOCK;
        bool works = turn < TURNS && part < PARTS;
        int begin = works ? rows * part / PARTS : 0, end = works ? rows * (part + 1) / PARTS : 0;
        vec2 totals[BLOCK];
        float means[BLOCK];
        [[unroll]] for (int k = 0; k < BLOCK; ++k) {
            totals[k] = vec2(0.0);
            means[k] = works ? vector[BLOCK * row + k] : 0.0;
        }
        float mean = works ? vector[i] : 0.0;
        for (int y = begin; y < end; ++y) {
            float samples[BLOCK];
            [[unroll]] for (int k = 1; k < BLOCK; ++k) samples[k] = contrast_at(y + row, k - 1);
            for (int first = 0; first < columns; first += AT_ONCE) {
                [[unroll]] for (int step = 0; step < AT_ONCE; ++step) {
                    int x = first + step;
                    if (x >= columns) continue;
                    [[unroll]] for (int k = 1; k < BLOCK; ++k) samples[k - 1] = samples[k];
                    samples[BLOCK - 1] = contrast_at(y + row, x + BLOCK - 1);
                    vec2 own = whole_sum(contrast_at(y + i / BLOCK, x + i % BLOCK), -mean);
                    [[unroll]] for (int k = 0; k < BLOCK; ++k) {
                        totals[k] = add_product(totals[k], own, whole_sum(samples[k], -means[k]));
                    }
                }
            }
        }
        [[unroll]] for (int other = 1; other < PARTS; ++other) {
            barrier();
            if (part == other) {
                [[unroll]] for (int k = 0; k < BLOCK; ++k) {
                    targets[(2 * k) * TURNS_AT_ONCE + place] = totals[k].x;
                    targets[(2 * k + 1) * TURNS_AT_ONCE + place] = totals[k].y;
                }
            }
            barrier();
            [[unroll]] for (int k = 0; k < BLOCK; ++k) {
                vec2 sum = whole_sum(totals[k].x, targets[(2 * k) * TURNS_AT_ONCE + place]);
                precise float low = sum.y + (totals[k].y + targets[(2 * k + 1) * TURNS_AT_ONCE + place]);
                if (part == 0) totals[k] = whole_sum(sum.x, low);
            }
        }
        [[unroll]] for (int k = 0; k < BLOCK; ++k) {
            int j = BLOCK * row + k;
            if (works && part == 0 && j <= i) covariance[i][j] = covariance[j][i] = divided(totals[k], count);
        }
    }
    barrier();
}

// -- eigenvalues ----------------------------------------------------------------------------------------------------------

// Returns the norm of the entries of `vector` from a place on.
float norm_from(int first) {
    precise float sum = rounded_product(vector[first], vector[first]);
    for (int i = first + 1; i < size_of_blocks(); ++i) sum += rounded_product(vector[i], vector[i]);
    return root(sum);
}

// Reduces `left` to its diagonal and subdiagonal.
void make_tridiagonal() {
    int i = thread_index();
    for (int column = 0; column < size_of_blocks() - 2; ++column) {
        int first = column + 1;
        if (i >= first && i < N) vector[i] = left[i][column];
        barrier();
        float norm = norm_from(first + 1), alpha = vector[first];
        barrier();
        if (norm == 0.0) continue;
        precise float square = rounded_product(alpha, alpha) + rounded_product(norm, norm);
        precise float beta = alpha >= 0.0 ? -root(square) : root(square);
        precise float change = beta - alpha, size = alpha - beta;
        float tau = quotient(change, beta);
        if (i > first && i < N) vector[i] = quotient(vector[i], size);
        if (i == first) {
            left[first][column] = beta;
            vector[first] = 1.0;
        }
        barrier();
        if (i >= first && i < N) {
            precise float sum = rounded_product(rounded_product(tau, left[i][first]), vector[first]);
            for (int j = first + 1; j < size_of_blocks(); ++j) sum += rounded_product(rounded_product(tau, left[i][j]), vector[j]);
            image[i] = sum;
        }
        barrier();
        precise float dot = rounded_product(image[first], vector[first]);
        for (int j = first + 1; j < size_of_blocks(); ++j) dot += rounded_product(image[j], vector[j]);
        precise float factor = -0.5 * rounded_product(tau, dot);
        barrier();
        if (i >= first && i < N) {
            precise float moved = image[i] + rounded_product(factor, vector[i]);
            image[i] = moved;
        }
        barrier();
        if (i >= first && i < N) {
            for (int j = first; j < size_of_blocks(); ++j) {
                precise float moved = rounded_product(image[i], vector[j]) + rounded_product(vector[i], image[j]);
                precise float reduced = left[i][j] - moved;
                left[i][j] = reduced;
            }
        }
        barrier();
    }
    for (int k = i; k < size_of_blocks(); k += THREADS) {
        diagonal[k] = left[k][k];
        if (k < N - 1) below[k] = left[k + 1][k];
    }
    barrier();
}

void drop_small(int first, int last) {
    for (int k = first; k < last; ++k) {
        precise float size = abs(diagonal[k]) + abs(diagonal[k + 1]);
        if (abs(below[k]) < rounded_product(SMALL, size)) below[k] = 0.0;
    }
}

// Returns the cosine and the sine of Givens' rotation that makes the second number 0.
vec2 rotation(float first, float second) {
    if (second == 0.0) return vec2(1.0, 0.0);
    bool swapped = abs(second) > abs(first);
    float slope = swapped ? quotient(-first, second) : quotient(-second, first);
    precise float square = 1.0 + rounded_product(slope, slope);
    float larger = inverse_root(square), smaller = rounded_product(larger, slope);
    return swapped ? vec2(smaller, larger) : vec2(larger, smaller);
}

// Returns Wilkinson's shift of the part of the matrix that ends at `last`.
float shift_of(int last) {
    float end = diagonal[last], side = below[last - 1];
    precise float difference = diagonal[last - 1] - end;
    float half_of = 0.5 * difference;
    if (half_of == 0.0) {
        precise float shift = end - abs(side);
        return shift;
    }
    precise float square = rounded_product(half_of, half_of) + rounded_product(side, side);
    float length_of = root(square);
    precise float divisor = half_of > 0.0 ? half_of + length_of : length_of - half_of;
    float change = rounded_product(side, quotient(side, divisor));
    precise float shift = half_of > 0.0 ? end - change : end + change;
    return shift;
}

// Rotates the part of the matrix from `first` to `last` once. The names are those of the twin.
void rotate(int first, int last) {
    float shift = shift_of(last);
    precise float size = abs(diagonal[first]) + abs(below[first]);
    if (rounded_product(SMALL, abs(shift)) > size) shift = 0.0;
    precise float x = diagonal[first] - shift;
    float z = below[first], before = 0.0, bulge = 0.0;
    float a = diagonal[first], b = below[first], after = diagonal[first + 1];
    float b_after = last - first > 1 ? below[first + 1] : 0.0;
    for (int k = first; k < last; ++k) {
        vec2 turn = rotation(x, z);
        float c = turn.x, s = turn.y;
        if (k > first) {
            precise float kept = rounded_product(c, before) - rounded_product(s, bulge);
            below[k - 1] = kept;
        }
        precise float ca_sb = rounded_product(c, a) - rounded_product(s, b);
        precise float sf_cb = rounded_product(s, after) - rounded_product(c, b);
        precise float sa_cb = rounded_product(s, a) + rounded_product(c, b);
        precise float sb_cf = rounded_product(s, b) + rounded_product(c, after);
        precise float kept_diagonal = rounded_product(c, ca_sb) + rounded_product(s, sf_cb);
        diagonal[k] = kept_diagonal;
        precise float next = rounded_product(c, sa_cb) - rounded_product(s, sb_cf);
        before = next;
        precise float next_a = rounded_product(s, sa_cb) + rounded_product(c, sb_cf);
        a = next_a;
        bulge = rounded_product(-s, b_after);
        b = rounded_product(c, b_after);
        if (k < last - 1) {
            after = diagonal[k + 2];
            below[k + 1] = b;
        }
        if (k < last - 2) b_after = below[k + 2];
        x = before;
        z = bulge;
    }
    diagonal[last] = a;
    below[last - 1] = before;
}

void make_eigenvalues() {
    for (int place = thread_index(); place < N * N; place += THREADS) left[place / N][place % N] = covariance[place / N][place % N];
    barrier();
    make_tridiagonal();
    if (thread_index() == 0) {
        drop_small(0, N - 1);
        int last = N - 1;
        for (int iterations = 0; last > 0 && iterations < MAX_ITERATIONS;) {
            if (below[last - 1] == 0.0) {
                --last;
                continue;
            }
            int first = last - 1;
            while (first > 0 && below[first - 1] != 0.0) --first;
            rotate(first, last);
            drop_small(first, last);
            ++iterations;
        }
        bool found = false;
        for (int k = 0; k < size_of_blocks(); ++k) found = found || diagonal[k] < SMALL;
        singular = found;
    }
    barrier();
}

// -- solution -------------------------------------------------------------------------------------------------------------

float norm(const float numbers[N]) {
    precise float sum = rounded_product(numbers[0], numbers[0]);
    [[unroll]] for (int i = 1; i < N; ++i) sum += rounded_product(numbers[i], numbers[i]);
    return root(sum);
}

// Makes Q' in `rotated` by Householder's reflections of the covariance. A thread has a column of the matrix that is reduced, or,
// if it is one of the next 25 threads, a column of Q'.
void make_rotation() {
    int i = thread_index(), column = i % N;
    bool reduces = i < N;
    int rows = i < 2 * N ? size_of_blocks() : 0;
    float numbers[N], reflected[N], direction[N];
    [[unroll]] for (int j = 0; j < N; ++j) numbers[j] = reduces ? covariance[j][column] : float(j == column);
    for (int k = 0; k < size_of_blocks() - 1; ++k) {
        [[unroll]] for (int j = 0; j < N; ++j) {
            if (reduces && min(j, column) < k) numbers[j] = float(j == column);
        }
        if (i == k) {
            [[unroll]] for (int j = 0; j < N; ++j) vector[j] = numbers[j];
        }
        barrier();
        [[unroll]] for (int j = 0; j < N; ++j) direction[j] = vector[j];
        barrier();
        float length_of = norm(direction);
        float change = covariance[k][k] >= 0.0 ? length_of : -length_of;
        [[unroll]] for (int j = 0; j < N; ++j) {
            precise float end = direction[j] + change;
            direction[j] = j == k ? end : direction[j];
        }
        length_of = norm(direction);
        [[unroll]] for (int j = 0; j < N; ++j) direction[j] = quotient(direction[j], length_of);
        for (int row = 0; row < rows; ++row) {
            float twice = -2.0 * direction[row];
            precise float sum = 0.0;
            [[unroll]] for (int j = 0; j < N; ++j) {
                float product = rounded_product(twice, direction[j]);
                precise float more = product + 1.0;
                sum += rounded_product(row == j ? more : product, numbers[j]);
            }
            reflected[row] = sum;
        }
        [[unroll]] for (int j = 0; j < N; ++j) numbers[j] = reflected[j];
    }
    if (i >= N && i < 2 * N) {
        [[unroll]] for (int j = 0; j < N; ++j) rotated[j][column] = numbers[j];
    }
    barrier();
    // The upper triangle, made anew from the covariance.
    for (int place = i; place < N * N; place += THREADS) {
        int row = place / N, column = place % N;
        precise float sum = 0.0;
        for (int j = 0; j < size_of_blocks(); ++j) sum += rounded_product(rotated[row][j], covariance[j][column]);
        left[row][column] = sum;
    }
    barrier();
    if (i == 0) {
        bool found = singular;
        for (int k = 0; k < size_of_blocks(); ++k) found = found || abs(left[k][k]) < SMALL;
        singular = found;
    }
    barrier();
}

// Returns the variance of the block whose first sample is at a place.
float variance(int y, int x) {
    int i = thread_index();
    float samples[N];
    [[unroll]] for (int j = 0; j < N; ++j) samples[j] = contrast_at(y + j / BLOCK, x + j % BLOCK);
    for (int row = 0; row < size_of_blocks(); ++row) {
        precise float sum = 0.0;
        [[unroll]] for (int j = 0; j < N; ++j) sum += rounded_product(rotated[row][j], samples[j]);
        targets[row * BLOCKS_AT_ONCE + i] = sum;
    }
    for (int row = size_of_blocks() - 1; row >= 0; --row) {
        precise float rest = targets[row * BLOCKS_AT_ONCE + i];
        for (int j = row + 1; j < size_of_blocks(); ++j) rest -= rounded_product(targets[j * BLOCKS_AT_ONCE + i], left[row][j]);
        targets[row * BLOCKS_AT_ONCE + i] = quotient(rest, left[row][row]);
    }
    precise float sum = 0.0;
    [[unroll]] for (int j = 0; j < N; ++j) {
        sum += quotient(rounded_product(targets[j * BLOCKS_AT_ONCE + i], samples[j]), float(N));
    }
    return sum;
}

void main() {
    int i = thread_index(), z = workgroup_id().z;
    int across = width / BLOCK, down = height / BLOCK;
    make_covariance(down * BLOCK - BLOCK + 1, across * BLOCK - BLOCK + 1);
    make_eigenvalues();
    if (!singular) make_rotation();

    int first = (z >> 1) * frame_partials + (z & 1) * (N + 1 + across * down);
    if (i < N) partials[first + i] = diagonal[i];
    if (i == N) partials[first + N] = float(singular);
    for (int block = i; i < BLOCKS_AT_ONCE && block < across * down; block += BLOCKS_AT_ONCE) {
        partials[first + N + 1 + block] = singular ? 0.0 : variance(block / across * BLOCK, block % across * BLOCK);
    }
}
