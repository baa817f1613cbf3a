"""The tables of docs/scale.md: what was measured beyond memory, on ranks and on Ray."""

from __future__ import annotations

from pathlib import Path

import results
from markdown_table import table
from results import Record

NONE = "Nothing has been measured on a quiet machine yet."


def scale_tables(folder: Path) -> str:
    """Returns the measured figures, and the cost model with what it predicts."""
    parts = [part for part in (_figures(folder), _model(folder)) if part]
    return "\n\n".join(parts) or NONE


def _figures(folder: Path) -> str:
    lines = [
        line
        for name, told in (
            ("beyond-memory-memory", _memory),
            ("beyond-memory-speed", _speed),
            ("beyond-memory-nats", _nats),
            ("ranks", _ranks),
            ("ranks-weights", _weights),
            ("ray-members", _members),
            ("ray-scores", _scores),
        )
        for record in results.read(folder, f"{name}.json")
        for line in told(record["results"])
    ]
    return table(("what", "measured", "asked"), lines) if lines else ""


Lines = list[tuple[str, str, str]]


def _memory(found: Record) -> Lines:
    what = f"fit to {found['rows']:,} rows for {found['seconds'] / 60:.1f} minutes, peak memory"
    return [(what, f"{found['peak_bytes'] / 1e9:.2f} GB", "1.5 GB")]


def _speed(found: Record) -> Lines:
    rate = found["pieces_over_memory"]["median"]
    return [("rows per second from pieces over those from memory", f"{rate:.2f}", "0.85")]


def _nats(found: Record) -> Lines:
    what = f"held-out nats from pieces minus those from memory, {found['steps']:,} steps"
    return [(what, f"{found['pieces_ahead']:+.4f} ± {found['standard_error']:.4f}", "0.01")]


def _ranks(found: Record) -> Lines:
    ahead = found["two_over_one"]["median"]
    waits = found["waits"]["median"] / found["seconds_per_step"]["two"]["median"]
    return [
        ("rows per second of two ranks over those of one", f"{ahead:.2f}", "1.8"),
        ("share of a step of two ranks that is the exchange", f"{waits:.1%}", ""),
    ]


def _weights(found: Record) -> Lines:
    what = f"weights of one rank and of two after {found['steps']} steps, largest difference"
    return [(what, f"{found['weights_apart']:.1e}", "1e-5")]


def _members(found: Record) -> Lines:
    what = f"{found['members']} members on two Ray nodes over one after another"
    bits = "same bits" if found["same_bits"] else "other bits"
    return [(what, f"{found['two_nodes_ahead']['median']:.2f}, {bits}", "1.8, same bits")]


def _scores(found: Record) -> Lines:
    what = f"{found['rows']:,} rows scored on two Ray nodes over one process"
    same = "same scores" if found["same_scores"] else "other scores"
    return [(what, f"{found['two_nodes_ahead']:.2f}, {same}", "1.8")]


def _model(folder: Path) -> str:
    names = ("scale-steps", "scale-exchange", "scale-plan")
    found = [results.read(folder, f"{name}.json") for name in names]
    if not all(found):
        return ""
    known, link, plan = (records[0]["results"] for records in found)
    parts = _constants(known, link), _steps(known), _runs(plan), _plan(plan), _changes(plan)
    return "\n\n".join(parts)


def _constants(known: Record, link: Record) -> str:
    own, rates = known["constants"], known["values_per_second"]
    lines = [
        ("s, a step of nothing", f"{own['s'] * 1e3:.2f} ms"),
        ("o, optimizer and averages, each weight", f"{own['o'] * 1e9:.2f} ns"),
        ("a, each weight of each row", f"{own['a'] * 1e12:.1f} ps"),
        ("c, each column of each row", f"{own['c'] * 1e9:.0f} ns"),
        ("l, an exchange of two ranks of nothing", f"{link['latency'] * 1e6:.0f} µs"),
        ("β, bytes that two ranks exchange per second", f"{link['bandwidth'] / 1e9:.2f} GB/s"),
        ("first pass, values per second", f"{rates['first_pass'] / 1e6:.1f} million"),
        ("row groups decoded, values per second", f"{rates['decoded'] / 1e6:.1f} million"),
    ]
    return table(("constant of this machine, one thread", "value"), lines)


def _steps(figures: Record) -> str:
    head = ("columns", "hidden", "rows", "weights", "step, ms", "predicted / measured", "")
    lines = [
        (
            *(str(one["columns"]), str(one["hidden"]), str(one["batch"]), f"{one['weights']:,}"),
            f"{one['seconds'] * 1e3:.1f}",
            f"{one['predicted_over_measured']:.2f}",
            "" if one["fitted"] else "not fitted to",
        )
        for one in figures["steps"]
    ]
    return table(head, lines)


def _runs(plan: Record) -> str:
    lines = [
        (one["what"], f"{one['measured']:.3g}", f"{one['predicted_over_measured']:.2f}")
        for one in plan["runs"]
    ]
    return table(("run, not fitted to", "measured", "predicted / measured"), lines)


def _plan(plan: Record) -> str:
    about = plan["planned"]
    head = (
        f"nodes of {about['cores']} cores: {about['rows']:.0e} rows × {about['columns']} columns, "
        f"hidden {about['hidden']}, {about['batch']:,} rows per step",
        *("first pass, hours", "step, s", "exchange", "reading", "epoch, hours"),
    )
    lines = [
        (
            str(one["nodes"]),
            f"{one['first_pass_hours']:.2g}",
            f"{one['step_seconds']:.3g}",
            f"{one['exchange_share']:.1%}",
            f"{one['reading_share']:.1%}",
            f"{one['epoch_hours']:.3g}",
        )
        for one in plan["plan"]
    ]
    sentence = (
        f"Half of a step is the exchange and what all ranks do alike at "
        f"{plan['levels_off_at_ranks']:.0f} ranks."
    )
    return f"{table(head, lines)}\n\n{sentence}"


def _changes(plan: Record) -> str:
    changes = plan["changes"]
    lines = [(one["what"], f"{one['epoch_hours']:.3g}") for one in changes["ways"]]
    return table((f"on {changes['nodes']} nodes", "epoch, hours"), lines)
