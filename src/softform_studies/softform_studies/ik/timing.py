"""How long a call takes."""

import statistics
import time
from collections.abc import Callable


def median_ms(call: Callable[[], object]) -> float:
    """Median wall-clock time of a call in milliseconds, after one call that warms the caches up."""
    call()
    seconds = []
    for _ in range(30):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1e3
