"""SSIM and MS-SSIM with their gradients: what is computed, the plan of it, and the numbers that come out."""
