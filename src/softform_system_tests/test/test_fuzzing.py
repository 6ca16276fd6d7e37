"""Fuzzing: what a target does wrong is counted by its kind and kept, and goes on; mutation is repeatable."""

import json
import random

import pytest

from softform_core.errors import SoftformError
from softform_system_tests.fuzzing import trial as trial_module
from softform_system_tests.fuzzing.campaign import fuzz
from softform_system_tests.fuzzing.trial import Trial
from softform_system_tests.fuzzing.worker import LONGEST, mutated


def faulty(data: bytes) -> None:
    while data == b"hang":
        pass
    assert data != b"wrong"
    if data.startswith(b"crash"):
        raise KeyError(data)


def test_a_trial_counts_and_keeps_what_goes_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_module, "HANG_SECONDS", 0.05)
    trial = Trial(faulty, tmp_path, inputs=6)
    for data in (b"fine", b"hang", b"wrong", b"crash", b"crash again", b"fine"):
        assert not trial.is_over
        trial.take(data)
    assert trial.is_over
    told = json.loads((tmp_path / "counts.json").read_text())
    assert {kind: told[kind] for kind in trial.counts} == {"inputs": 6, "crash": 2, "hang": 1, "wrong accept": 1}
    kept = {path.name.rpartition("-")[0]: path.read_bytes() for path in tmp_path.glob("*-????????????")}
    assert kept == {"hang": b"hang", "wrong-accept": b"wrong", "crash": b"crash"}  # one input for each place
    (told_why,) = tmp_path.glob("crash-*.txt")
    assert "KeyError" in told_why.read_text()


def test_mutation_is_repeatable_varied_and_bounded():
    seeds = [b"SC=3\r\nT=1.500\r\n", bytes(LONGEST)]
    made = [mutated(seeds, random.Random(number)) for number in range(300)]
    assert made == [mutated(seeds, random.Random(number)) for number in range(300)]
    assert len(set(made)) > 200
    assert max(map(len, made)) <= LONGEST


def test_without_targets_there_is_nothing_to_fuzz(tmp_path):
    with pytest.raises(SoftformError, match="no fuzz target"):
        fuzz([], 10, tmp_path, 0, 1)
