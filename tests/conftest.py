"""What holds for every test: Ctrl-C interrupts, however the run was started.

A shell without job control (``nohup make test &``, some CI runners) starts its jobs with SIGINT
ignored, and Python then leaves it ignored: the tests that interrupt a fit would wait for an
interruption that never comes. Children inherit what is set here.
"""

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
