"""Checks that run for minutes or hours; each command says `--help`.

- `fuzz` feeds the targets of tests/fuzz with inputs that are led by coverage.
- `kill_test` kills vkssim at random moments and compares what a resumed run writes.
- `soak` repeats loads and fails if memory, descriptors, threads or Vulkan objects grow. `loads.py` has the loads, and
  `growth.py` runs one and looks at the process.
- `precision` searches for pictures on which Vulkan's scores differ from libvmaf's arithmetic.
- `threads` uses every entry point of the library on threads of one process, and fails if one does not return.
- `mutate` puts the faults of `mutations.py` into a copy of the tree and runs the check that has to notice each.
"""
