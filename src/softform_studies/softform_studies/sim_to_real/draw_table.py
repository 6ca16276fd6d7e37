"""The figures of `draw_figures` as tables for people."""

from collections.abc import Mapping, Sequence
from typing import Any

_CUTS = ("mean_reduction", "max_reduction")
_SPREAD = ("median", "p10", "worst")
_ERRORS = {
    "simulation alone": "before",
    "learned": "after",
    "floor without history": "memory",
    "floor: spline": "spline",
    "floor: N_fk": "forward_kinematics",
    "floor: warp": "warp",
}


def draw_tables(figures: Mapping[str, Any]) -> str:
    """Cuts with their floors, and by kind of difference, of the figures of `draw_figures` and what was drawn."""
    head = (
        f"{figures['draws']} realities of {figures['robot']} at random, from seed {figures['first_seed']}; recipe "
        f"{figures['recipe']}, {figures['frames']} frames each, {figures['left_out']} of all left out as unfit;\n"
        f"{figures['missing']:.0%} of the surface missing in a frame (median)."
    )
    return "\n\n".join([head, _cuts(figures), _errors(figures), _kinds(figures["by_kind"])])


def _cuts(figures: Mapping[str, Any]) -> str:
    others = {"w = 1": "fixed_confidence", "without the prior": "without_prior"}
    learners = {"learned": figures} | {name: figures[key] for name, key in others.items() if key in figures}
    rows = []
    for name, of in learners.items():
        for cut, what in zip(_CUTS, ("mean error", "largest of a shape"), strict=True):
            rows.append([f"{name}: {what}", *(_percent(of[cut][each]) for each in _SPREAD)])
    return _table(["cut, %", *("median", "10th percentile", "worst")], rows)


def _errors(figures: Mapping[str, Any]) -> str:
    """Medians; a floor is what would be left if all else were perfect."""
    rows = []
    for name, key in _ERRORS.items():
        errors = figures[key] if key in ("before", "after") else figures["floors"][key]
        cuts = {"before": dict.fromkeys(_CUTS, 0.0), "after": {cut: figures[cut]["median"] for cut in _CUTS}}
        of_it = cuts.get(key, errors)
        rows.append([name, f"{errors['mean_mm']:.3f}", f"{errors['max_mm']:.2f}", *(_percent(of_it[c]) for c in _CUTS)])
    return _table(["medians", "mean, mm", "largest, mm", "cut of the mean, %", "of the largest"], rows)


def _kinds(kinds: Mapping[str, Any]) -> str:
    rows = []
    for name, of in kinds.items():
        parts = [of, of["fixed_confidence"]] if "fixed_confidence" in of else [of]
        cuts = (part[cut] for part in parts for cut in _CUTS)
        rows.append([name.replace("_", " "), str(of["draws"]), *map(_percent, cuts)])
    header = ["differs in; medians, %", "draws", "mean", "largest", "w = 1: mean", "largest"]
    return _table(header[: len(rows[0])], rows)


def _percent(share: float) -> str:
    return f"{100.0 * share:.1f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in (header, *rows)
    )
