"""Score one pair of clips from start to end: choose the frames, run the batches, divide clips into ranges, judge the result.

This package uses frames, backends and reports. It does not depend on its caller, on the process that it runs in, or on the
number of devices. Read `run` first.
"""
