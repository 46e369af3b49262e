// Filters vertically for decimate_fast_strip.glsl and decimate_fast_staged.glsl, in float32.

// Adds an even and an odd row of four columns to the four unfinished outputs, and returns the output that the even row
// completes.
vec4 add_rows(vec4 even, vec4 odd, inout vec4 open[4]) {
    vec4 done = open[0] + LOW_PASS[8] * even;
    open[0] = open[1] + LOW_PASS[6] * even + LOW_PASS[7] * odd;
    open[1] = open[2] + LOW_PASS[4] * even + LOW_PASS[5] * odd;
    open[2] = open[3] + LOW_PASS[2] * even + LOW_PASS[3] * odd;
    open[3] = LOW_PASS[0] * even + LOW_PASS[1] * odd;
    return done;
}
