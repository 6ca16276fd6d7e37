"""Memory that is freed goes back to the system, even where small blocks that are in use lie between."""

import subprocess
import sys

import pytest

CHILD = """
import ctypes, sys, psutil
from softform_core.heap import give_back_what_is_free, keep_large_arrays_off_the_heap

libc = ctypes.CDLL(None)
libc.malloc.restype = libc.memset.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
size, between, count = map(int, sys.argv[2:])
if sys.argv[1] == "kept off":
    keep_large_arrays_off_the_heap()
libc.free(libc.malloc(12 * 2**20))  # from now on glibc by itself would put arrays up to this size on the heap
before = psutil.Process().memory_info().rss
written, small = [], []
for _ in range(count):
    written.append(libc.memset(libc.malloc(size), 1, size))
    small.append(libc.malloc(between))  # no hole that was left before takes it; never written, so hardly there
for block in written:
    libc.free(block)
if sys.argv[1] == "given back":
    give_back_what_is_free()
print(psutil.Process().memory_info().rss - before)
"""
LARGE = (6 * 2**20, 2**20, 20)
SMALL = (64 * 2**10, 16 * 2**10, 2000)


def _share_left_after_freeing(how: str, blocks: tuple[int, int, int]) -> float:
    command = [sys.executable, "-c", CHILD, how, *map(str, blocks)]
    child = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return int(child.stdout) / (blocks[0] * blocks[2])


@pytest.mark.parametrize(("how", "is_given_back"), [("kept off", True), ("left alone", False)])
def test_large_arrays_between_small_ones_are_given_back(how: str, is_given_back: bool) -> None:
    assert (_share_left_after_freeing(how, LARGE) < 0.1) == is_given_back


@pytest.mark.parametrize(("how", "is_given_back"), [("given back", True), ("left alone", False)])
def test_what_is_free_between_blocks_in_use_is_given_back(how: str, is_given_back: bool) -> None:
    assert (_share_left_after_freeing(how, SMALL) < 0.2) == is_given_back
