"""Table III of paper 000 as it is printed: times of an iteration, ms, and iterations of inverse kinematics."""

from typing import NamedTuple


class PrintedRow(NamedTuple):
    """A target of the paper; times are means over the iterations."""

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
