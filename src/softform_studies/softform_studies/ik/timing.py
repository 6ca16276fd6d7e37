"""How long a call takes."""

import statistics
import time
from collections.abc import Callable


def median_ms(call: Callable[[], object], repeats: int = 30) -> float:
    """Median wall-clock time of a call in milliseconds, after one call that warms the caches up."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e3
