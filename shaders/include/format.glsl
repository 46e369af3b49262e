// Formats of the samples that a kernel reads. Specialisation constant 1 is one of these.
layout(constant_id = 1) const uint FORMAT = 0u;
const uint FLOAT32 = 0u;
const uint UINT8 = 1u;
const uint UINT16 = 2u;  // little-endian; the reader multiplies them by the push constant `scale`, 2^(8-bits)
