"""Checks that run for minutes or hours; each command says `--help`.

- `fuzz` feeds the targets of tests/fuzz with inputs that are led by coverage.
- `kill_test` kills vkssim at random moments and compares what a resumed run writes.
- `soak` repeats loads and fails where memory, descriptors, threads or Vulkan objects grow. `loads.py` has the loads, and
  `growth.py` runs one and looks at the process.
- `mutate` puts the faults of `mutations.py` into a copy of the tree and runs the check that has to notice each.
"""
