"""Set-up that all workers share, whoever starts them."""

import os
from typing import TypeVar

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Environment of a worker: one core each, which also makes results repeat."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def default_jobs() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))
