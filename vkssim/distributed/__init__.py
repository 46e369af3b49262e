"""Score pairs of clips on several devices, in ranges of frames that do not depend on each other.

This package knows how one pair is scored and how a device is opened. It does not know which files are written in the end. Read
`engine` first, then `scheduler` and `worker`.
"""
