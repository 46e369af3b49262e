"""Helpers that tests of several folders share.

- clips and pictures: `pictures`, `clips`, `children`, `coded`
- numbers: `golden`, `vmaf_golden`, `libvmaf`, `against_libvmaf`, `hard_pictures`, `metrics`, `differences`, `tolerances`
- devices and machines: `devices`, `machines`
- programs, files and what stands in for others: `commands`, `waiting`, `journals`, `buckets`, `vapoursynth_stand_in`
"""
