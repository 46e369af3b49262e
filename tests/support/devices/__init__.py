"""The device that tests run on, with its kernels kept, its faults and its limits; and CUDA as NumPy on the CPU."""
