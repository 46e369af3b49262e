"""Score one pair of clips from start to end: choose the frames, run the batches, divide clips into ranges, judge the result.

This package knows frames, backends and reports. It does not know its caller, the process that it runs in, or the number of
devices. Read `run` first.
"""
