"""Read frames from raw YUV, Y4M and containers, and crop, scale or turn them where that is asked for.

A source knows files and URLs through `storage`, and nothing of metrics, devices or results. Read `source` first, then `open`.
"""
