"""SSIM and MS-SSIM as losses with their gradients: which loss, its plan, and the numbers that come of its sums.

It knows kernels, plans and twins as `features` does, and opens no device: `backends.loss_engine` runs it. Read `spec` first.
"""
