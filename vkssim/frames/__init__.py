"""Frames come from raw YUV, Y4M and containers, and may be cropped, scaled or turned on their way.

A source knows files and URLs through `storage`, and nothing of metrics, devices or results. Read `source` first, then `open`.
"""
