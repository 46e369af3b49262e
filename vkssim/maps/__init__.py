"""Compute SSIM maps, which show where in a picture two clips differ, and draw pictures of them.

It uses frames, backends and reports. Read `frames` first, for maps of clips; `mapper` computes maps of arrays.
"""

from .frames import choose_frames, colour, frame_pictures, png

__all__ = ["choose_frames", "colour", "frame_pictures", "png"]
