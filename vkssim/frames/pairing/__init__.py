"""Two clips together: comparable pictures, the pairs of frames, and one reference for several pairs.

Read `preprocessing` first, then `schedule`.
"""
