// The planes of cambi: a sample has its level of 10 bits in the lower 15 bits, and the highest bit if its place is flat. Levels
// of 16 bits may be rounded up to 1024. A word has two samples, and a block eight.

const uint FLAT = 0x8000u;
const uint LEVEL = 0x7fffu;
const int BLOCK = 8;

uint sample_of(uint word, int column) {
    return bitfieldExtract(word, 16 * (column & 1), 16);
}
