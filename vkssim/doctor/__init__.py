"""Find out whether vkssim can score on this machine, and what to do if it cannot.

Each module looks at one thing and returns a section of the diagnosis. Drivers are only loaded in processes of their own, so
that one that crashes or hangs becomes a line of the diagnosis. Read `diagnosis` first.
"""
