"""Shares of the processors' time are computed from the counters of the system."""

import time

from softform_studies.streaming.bench_streaming import processor_shares


def test_a_busy_thread_is_seen():
    processor_shares()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
    seen = processor_shares()
    assert seen["in_use"] > 0.0 and seen["stolen"] >= 0.0 and seen["in_use"] + seen["stolen"] <= 100.1
