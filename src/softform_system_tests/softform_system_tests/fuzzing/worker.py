"""Fuzzes one target in a process of its own: `python -m … ENGINE TARGET FOLDER INPUTS SEED`.

A process of its own, since the coverage-guided engine (atheris, libFuzzer below it) never returns, and since an input
that ends the interpreter must end nothing else.
"""

import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from softform_system_tests.fuzzing.trial import Trial, load_target, package_of, seeds_of

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


MUTATION, COVERAGE = "mutation", "coverage"

_READERS = ("softform_pneumatics", "softform_capture", "softform_core.shapes", "natnet", "qtm_rt", "trimesh")
"""What else reads the bytes of some target: without their branches nothing would guide."""


def main() -> None:
    """Try as many inputs as asked."""
    engine, name, folder, inputs, seed = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
    if engine == COVERAGE:
        _guided_by_coverage(name, folder, inputs, seed)
        return
    target = load_target(name)
    trial, seeds, choose = Trial(target, folder, inputs), seeds_of(target), random.Random(int(seed))
    for each in seeds:
        trial.take(each)
    while not trial.is_over:
        trial.take(mutated(seeds, choose))


def _guided_by_coverage(name: str, folder: Path, inputs: int, seed: str) -> None:
    import atheris

    with atheris.instrument_imports(include=[package_of(name), *_READERS]):
        target = load_target(name)
    trial = Trial(target, folder, inputs)
    corpus = folder / "corpus"
    corpus.mkdir(exist_ok=True)
    for number, each in enumerate(seeds_of(target)):
        (corpus / f"seed-{number:03d}").write_bytes(each)

    def take(data: bytes) -> None:
        trial.take(data)
        if trial.is_over:
            os._exit(0)  # libFuzzer would report its own end as a crash of Python

    # The trial has a timer of its own; libFuzzer's would stop at the first slow input.
    flags = [f"-max_len={LONGEST}", f"-seed={int(seed) + 1}", "-timeout=3600", "-rss_limit_mb=4096", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *flags, f"-artifact_prefix={folder}/", str(corpus)], take)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
