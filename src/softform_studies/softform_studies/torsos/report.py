"""What the comparison on torsos gives: figures for JSON, and lines in the columns of Table III."""

import statistics
from collections.abc import Sequence
from typing import Any

from softform_studies.torsos.bench import Case, Timing
from softform_studies.torsos.table3 import TABLE_3, printed_means

_COLUMNS = ("forward_ms", "gradient_ms", "closest_ms", "rest_ms", "total_ms", "iterations", "solve_ms")


def figures_of(cases: Sequence[Case], largest_deformation_mm: float, sim_to_real: bool) -> dict[str, Any]:
    """Figures of all targets, their means, and the paper's."""
    ratios = [case.algorithm_2_equal.solve_ms / case.ours.solve_ms for case in cases]
    return {
        "with_sim_to_real": sim_to_real,
        "largest_deformation_mm": largest_deformation_mm,
        "paper_table_3": {"rows": [row._asdict() for row in TABLE_3], "mean": printed_means()},
        "mean": {
            name: {column: statistics.fmean(getattr(of(case), column) for case in cases) for column in _COLUMNS}
            for name, of in (("ours", _ours), ("algorithm_2", _algorithm_2), ("algorithm_2_equal_error", _equal))
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


def _ours(case: Case) -> Timing:
    return case.ours


def _algorithm_2(case: Case) -> Timing:
    return case.algorithm_2


def _equal(case: Case) -> Timing:
    return case.algorithm_2_equal
