"""Random changes of valid inputs, where no coverage-guided fuzzer is installed."""

import random
from collections.abc import Sequence

LONGEST = 4096
_EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_WIDTHS = (1, 2, 4, 8)
_MOST_CHANGES = 6
_RANDOM_SHARE = 0.02
_LONGEST_RANDOM = 64


def mutated(seeds: Sequence[bytes], choose: random.Random) -> bytes:
    """One input: a few changes of one of the valid seeds, or sometimes none of them at all."""
    if choose.random() < _RANDOM_SHARE:
        return choose.randbytes(choose.randrange(_LONGEST_RANDOM))
    data = bytearray(choose.choice(seeds))
    for _ in range(choose.randint(1, _MOST_CHANGES)):
        choose.choice(_CHANGES)(data, seeds, choose)
    return bytes(data[:LONGEST])


def _place(data: bytearray, choose: random.Random) -> int:
    return choose.randrange(len(data) + 1)


def _flip(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    if data:
        data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)


def _overwrite(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    if data:
        data[choose.randrange(len(data))] = choose.randrange(256)


def _insert(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    place = _place(data, choose)
    data[place:place] = choose.randbytes(choose.randint(1, 8))


def _cut(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    start = _place(data, choose)
    del data[start : start + choose.randint(1, 16)]


def _truncate(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    del data[_place(data, choose) :]


def _repeat(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    start = _place(data, choose)
    part = data[start : start + choose.randint(1, 32)]
    data[start:start] = part * choose.randint(1, 4)


def _edge(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    width = choose.choice(_WIDTHS)
    value = choose.choice(_EDGES) % 256**width
    start = _place(data, choose)
    data[start : start + width] = value.to_bytes(width, choose.choice(("little", "big")))


def _splice(data: bytearray, seeds: Sequence[bytes], choose: random.Random) -> None:
    other = choose.choice(seeds)
    data[_place(data, choose) :] = other[choose.randrange(len(other) + 1) :]


_CHANGES = (_flip, _overwrite, _insert, _cut, _truncate, _repeat, _edge, _splice)
