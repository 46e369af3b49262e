"""Scores pairs of clips on several devices: in ranges of frames that need nothing of each other."""
