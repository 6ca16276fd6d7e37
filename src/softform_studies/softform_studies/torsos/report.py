"""What the comparison on torsos gives: figures for JSON, and lines in the columns of Table III, as it is printed."""

import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

from softform_studies.torsos.bench import Case, Timing


class PrintedRow(NamedTuple):
    """A target of Table III of paper 000; times are means over the iterations."""

    target: str
    forward_ms: float
    gradient_ms: float
    icp_ms: float
    total_ms: float
    iterations: int


TABLE_3 = (
    PrintedRow("M1", 65.8, 137.7, 171.0, 374.5, 10),
    PrintedRow("M2", 75.7, 139.6, 174.3, 389.6, 22),
    PrintedRow("M3", 83.5, 118.8, 175.2, 377.5, 19),
    PrintedRow("M4", 69.9, 120.6, 213.8, 404.3, 15),
    PrintedRow("S1", 65.1, 131.1, 210.7, 406.9, 13),
    PrintedRow("S2", 74.8, 133.8, 180.3, 388.9, 25),
    PrintedRow("S3", 75.1, 125.3, 193.4, 393.8, 12),
    PrintedRow("S4", 80.1, 125.8, 186.7, 392.6, 17),
    PrintedRow("S5", 68.3, 139.3, 179.2, 386.8, 14),
    PrintedRow("S6", 73.5, 122.4, 178.5, 374.4, 19),
)
"""On an Intel i7-12700H, C++ with libTorch; its bodies are of the CAESAR survey, ours are others."""


def printed_means() -> dict[str, float]:
    """Means of the columns, and of the time of a solve: iterations times the time of one, ms."""
    count = len(TABLE_3)
    means = {
        key: sum(float(getattr(row, key)) for row in TABLE_3) / count
        for key in ("forward_ms", "gradient_ms", "icp_ms", "total_ms", "iterations")
    }
    return means | {"solve_ms": sum(row.total_ms * row.iterations for row in TABLE_3) / count}


_COLUMNS = ("forward_ms", "gradient_ms", "closest_ms", "rest_ms", "total_ms", "iterations", "solve_ms")
_SOLVES = {"ours": "ours", "algorithm_2": "algorithm_2", "algorithm_2_equal_error": "algorithm_2_equal"}


def figures_of(cases: Sequence[Case], largest_deformation_mm: float, sim_to_real: bool) -> dict[str, Any]:
    """Figures of all targets, their means, and the paper's."""
    ratios = [case.algorithm_2_equal.solve_ms / case.ours.solve_ms for case in cases]
    return {
        "with_sim_to_real": sim_to_real,
        "largest_deformation_mm": largest_deformation_mm,
        "paper_table_3": {"rows": [row._asdict() for row in TABLE_3], "mean": printed_means()},
        "mean": {
            name: {
                column: statistics.fmean(getattr(getattr(case, of), column) for case in cases) for column in _COLUMNS
            }
            for name, of in _SOLVES.items()
        },
        "solve_time_ratio_at_equal_error": statistics.geometric_mean(ratios),
        "targets": {case.target.name: case.figures() for case in cases},
    }


def table(cases: Sequence[Case]) -> list[str]:
    """Lines for the terminal: a target a line, ours, then Algorithm 2, then a row of the paper's."""
    lines = [
        "ms an iteration    ours                               Algorithm 2                        paper 000, Table III",
        "        forward grad closest  rest total  n | forward grad closest  rest total   n |  "
        "    forward grad  ICP total  n | mean error: rest, ours, Alg. 2, best known (mm)",
    ]
    for case, printed in zip(cases, TABLE_3, strict=False):
        errors = (case.rest_error_mm, case.ours.mean_error_mm, case.algorithm_2.mean_error_mm, case.best_error_mm)
        flag = " " if case.target.fits else "*"
        lines.append(
            f"{case.target.name:>4}{flag}  {_row(case.ours, 3)} | {_row(case.algorithm_2, 4)} |  {printed.target}"
            f" {printed.forward_ms:8.1f}{printed.gradient_ms:6.1f}{printed.icp_ms:6.1f}{printed.total_ms:6.1f}"
            f"{printed.iterations:3d} | " + " ".join(f"{error:6.2f}" for error in errors)
        )
    return [*lines, "* of another size than the mannequin: out of reach on purpose"]


def _row(timing: Timing, width: int) -> str:
    return (
        f"{timing.forward_ms:7.2f}{timing.gradient_ms:6.2f}{timing.closest_ms:7.2f}{timing.rest_ms:6.2f}"
        f"{timing.total_ms:6.2f}{timing.iterations:{width}d}"
    )
