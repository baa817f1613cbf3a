"""Where the verbs run what is independent: on this machine, or on a Ray cluster."""

from __future__ import annotations

import argparse

from nits.engines.engine import Engine


def chosen(args: argparse.Namespace) -> Engine | None:
    """Returns the engine that the options --engine and --workers name; None for the default."""
    if args.engine == "ray":
        from nits.engines.on_ray import Ray

        found = Ray(args.workers)
        found.started()  # so that a mistake is told before any work
        return found
    if args.engine is None and args.workers is None:
        return None
    from nits.engines.local import Local

    return Local(args.workers)
