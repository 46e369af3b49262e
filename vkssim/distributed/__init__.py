"""Pairs of clips are scored on several devices, in ranges of frames that need nothing of each other.

It knows how one pair is scored and how a device is opened; it does not know what is written of the scores in the end. Read
`pair` first, then `coordinator` and `worker`.
"""
