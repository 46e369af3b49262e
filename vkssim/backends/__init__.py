"""Where the metrics are computed: on a Vulkan device, or by NumPy."""
