"""Fuzzes one target in a process of its own: `python -m … ENGINE TARGET FOLDER INPUTS SEED`.

A process of its own, since the coverage-guided engine (atheris, libFuzzer below it) never returns, and since an input
that ends the interpreter must end nothing else.
"""

import os
import random
import sys
from pathlib import Path

from softform_system_tests.fuzzing.mutation import LONGEST, mutated
from softform_system_tests.fuzzing.targets import load_target, package_of, seeds_of
from softform_system_tests.fuzzing.trial import Trial

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
