"""Where the verbs run what is independent: on this machine, or on a Ray cluster."""

from __future__ import annotations

import argparse

from nits.engines.engine import Engine


def chosen(args: argparse.Namespace) -> Engine | None:
    """Returns the engine that --engine, --workers and --ranks name; None for the default."""
    if args.ranks is not None and args.engine != "ray":
        raise ValueError(
            "--ranks is for --engine ray; on one machine torchrun starts ranks: see docs/scale.md."
        )
    if args.engine == "ray":
        from nits.engines.on_ray import Ray
        from nits.engines.on_ray_train import RayTrain

        found = Ray(args.workers) if args.ranks is None else RayTrain(args.ranks)
        found.started()  # so that a mistake is told before any work
        return found
    if args.engine is None and args.workers is None:
        return None
    from nits.engines.local import Local

    return Local(args.workers)
