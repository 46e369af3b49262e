"""One pair of clips from start to end: which frames are compared, the loop over batches, ranges, and what is wrong at the end.

It knows frames, backends and reports; it does not know who runs it, in which process, or on how many devices. Read `run` first.
"""
