"""Where independent work runs: `local` on the cores of this machine.

An engine takes a function and tasks that do not depend on each other, runs them, shows one bar for
all, and returns the results in the order of the tasks.
"""
