"""Read frames from raw YUV, Y4M and containers, and crop, scale or turn them on request.

Read `source` first, which has the interface of all sources, then `open`, which chooses the source of a file. `decode` reads
containers, `picture` has the steps that change pictures, and `pairing` brings two clips together. Nothing here depends on
metrics, devices or results.
"""
