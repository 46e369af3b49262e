"""SSIM and MS-SSIM as losses with their gradients: the specification of a loss, its plan, and the step from sums to values.

It opens no device: `backends.loss_engine` runs the plans. Read `spec` first.
"""
