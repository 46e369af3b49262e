"""Containers, decoded with PyAV (FFmpeg) on the processor or by hardware. Read `container` first, then `decoder`."""
