"""One thread for arithmetic: these networks and matrices are so small that sharing costs more than it saves."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Make Torch and the linear-algebra libraries compute on one thread, which also makes results repeat."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
