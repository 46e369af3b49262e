"""Containers, decoded with PyAV (FFmpeg) on the CPU or by hardware. Read `container` first, then `decoder`."""
