"""Numbers, values and shares as a report spells them."""

from __future__ import annotations

import math
from typing import Any
from unicodedata import category

import numpy as np

from nits.printable import printable

LONGEST = 28
"""Characters of a value that are shown in a chart."""


def number(x: float, digits: int = 4) -> str:
    """Returns a number with so many digits that count, and a comma per thousand from 10,000."""
    if not math.isfinite(x):
        return "–" if math.isnan(x) else ("∞" if x > 0 else "−∞")
    size = abs(x)
    if size >= 1e9 or 0 < size < 1e-4:
        text = f"{x:.{max(0, digits - 2)}e}"
        mantissa, exponent = text.split("e")
        if "." in mantissa:
            mantissa = mantissa.rstrip("0").rstrip(".")
        text = f"{mantissa}e{int(exponent)}"
    else:
        places = max(0, digits - 1 - math.floor(math.log10(size))) if size else 0
        text = f"{x:,.{places}f}" if size >= 10_000 else f"{x:.{places}f}"
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def fixed(x: float | None, places: int = 3) -> str:
    """Returns a number with so many places after the point; a dash for None."""
    if x is None or not math.isfinite(x):
        return "–" if x is None else number(x)
    return f"{x:,.{places}f}".replace("-", "−")


def percent(share: float, places: int = 1) -> str:
    """Returns a share in per cent; one that is not zero never looks like it."""
    if 0 < share < 0.5 * 10 ** -(places + 2):
        return f"<\u00a0{10**-places:g}\u00a0%"
    return f"{100 * share:.{places}f}\u00a0%".replace("-", "−")


def value(found: Any, digits: int = 6) -> str:
    """Returns a value of a table as it would be read, real numbers with so many digits."""
    if found is None:
        return "missing"
    if isinstance(found, bool | np.bool_):
        return "yes" if found else "no"
    if isinstance(found, np.datetime64 | np.timedelta64):
        return time(found)
    if isinstance(found, int | np.integer):
        return f"{int(found):,}".replace("-", "−") if abs(int(found)) >= 10_000 else str(int(found))
    if isinstance(found, float | np.floating):
        return number(float(found), digits)
    return str(found)


def time(found: np.datetime64 | np.timedelta64) -> str:
    """Returns a time to the second, or as a date if it is midnight."""
    if isinstance(found, np.timedelta64):
        return str(found.astype("m8[s]").item())
    text = str(found.astype("M8[s]")).replace("T", " ")
    return text.removesuffix(" 00:00:00")


def duration(seconds: float) -> str:
    """Returns a duration in the unit that suits it."""
    units = (("d", 86400.0), ("h", 3600.0), ("min", 60.0))
    name, size = next(((n, s) for n, s in units if abs(seconds) >= s), ("s", 1.0))
    return f"{number(seconds / size, 3)} {name}"


def visible(text: str) -> str:
    """Returns text with control characters escaped, but spaces of any width as they are."""
    if text.isprintable():
        return text
    spaces = (one if category(one) == "Zs" else printable(one) for one in text)
    return "".join(spaces)


def short(text: str, most: int = LONGEST) -> str:
    """Returns text with control characters escaped, cut if it is long."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def several(count: int, one: str, many: str = "") -> str:
    """Returns a number with the right noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """Returns names as a phrase: a, b and c; a, b and 5 more."""
    shown = names[:most] if len(names) <= most else names[: most - 1]
    rest = len(names) - len(shown)
    parts = [*shown, *([f"{rest} more"] if rest else [])]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
