"""Score pairs of clips, on one device or on several, in ranges of frames that do not depend on each other.

This package uses frames, backends and reports. It does not know which files are written in the end. Read `engine` first, then
`scheduler`, `worker` and `run`.
"""
