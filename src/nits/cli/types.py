"""What options of the command line take: numbers, names and pairs, from text."""

from __future__ import annotations

import argparse
import math


def positive(text: str) -> float:
    """Returns a number above zero."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, but is {text}")
    return value


def count(text: str) -> int:
    """Returns an integer above zero."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer, but is {text}")
    return value


def seed(text: str) -> int:
    """Returns an integer that random numbers can begin with."""
    value = int(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2³² − 1, but is {text}")
    return value


def widths(text: str) -> tuple[int, ...]:
    """Returns positive integers, such as 16,16."""
    return tuple(count(part) for part in text.split(","))


def levels(text: str) -> list[float]:
    """Returns numbers, such as 0.1,0.9."""
    return [float(part) for part in text.split(",")]


def names(text: str) -> list[str]:
    """Returns names, such as a,b."""
    return [name.strip() for name in text.split(",") if name.strip()]


def pair(text: str) -> tuple[str, str]:
    """Returns COLUMN and VALUE of COLUMN=VALUE."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"must look like COLUMN=VALUE, but is {text!r}")
    return name, value


def support(text: str) -> tuple[str, tuple[float, float]]:
    """Returns COLUMN, and LOW and HIGH of COLUMN=LOW:HIGH, either of which may be left out."""
    name, ends = pair(text)
    low, colon, high = ends.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"must look like COLUMN=LOW:HIGH, but is {text!r}")
    return name, (float(low or "-inf"), float(high or "inf"))
