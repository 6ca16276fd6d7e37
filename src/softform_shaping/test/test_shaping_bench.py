"""The bench's ledger: what was done is not done again, and what differs is."""

import json
import math

import pytest

from softform_core.errors import SoftformError
from softform_core.executors import InProcess
from softform_core.kept import Ledger
from softform_shaping import bench, studies
from softform_shaping.bench import Job, settings_of, shaping

TASKS = ["sponge_1", "thin_foam_2"]


@pytest.fixture
def done(monkeypatch) -> list[Job]:
    jobs = []

    def run_task(job: Job, measure_reachable: bool) -> bench.Outcome:
        jobs.append(job)
        rms = 1.0 if job.controller == "ours" or job.seed == 7 else 3.0
        steps = dict.fromkeys(bench.STEPS, 0.01)
        figures = {"success": rms < 2.0, "true_rms_mm": rms, "true_max_mm": 2.0 * rms, "iterations": 4,
                   "to_success": 3 if rms < 2.0 else None, "ended": "done", "s_per_iteration": 0.04,
                   "s_by_step": steps, "course_mm": [9.0, rms]}  # fmt: skip
        return bench.Outcome(job, figures | ({"reachable_mm": 0.5} if measure_reachable else {}))

    monkeypatch.setattr(bench, "run_task", run_task)
    return jobs


def test_a_run_that_was_kept_is_not_done_again_and_more_seeds_are_added(done, tmp_path):
    ledger = tmp_path / "runs.jsonl"
    shaping(TASKS[:1], range(7, 8), InProcess(), lambda line: None, Ledger(ledger))
    assert len(done) == 2
    said: list[str] = []
    found = shaping(TASKS, range(7, 9), InProcess(), said.append, Ledger(ledger))
    assert len(done) == 8 and len(set(done)) == 8 and "2 of 8 runs were kept" in said
    assert (found["seeds"], found["first_seed"]) == (2, 7)
    assert found["tasks"]["sponge_1"]["success"] == 1.0 and found["printed"]["tasks"]["sponge_1"]["success"] == 0.5
    assert found["printed"]["tasks"]["sponge_1"]["worst_rms_mm"] == 3.0
    assert found["tasks"]["sponge_1"]["courses_mm"] == [[9.0, 1.0]] * 2
    assert (found["summary"]["ours"]["tasks_always_done"], found["summary"]["printed"]["tasks_always_done"]) == (2, 0)
    ours = found["summary"]["ours"]
    assert (ours["reachable"], ours["success_where_reachable"]) == (1.0, 1.0)
    assert found["summary"]["both"]["to_success_ours"] is None
    assert json.loads(json.dumps(found)) == found
    fewer = shaping(TASKS, range(7, 9), InProcess(), said.append, Ledger(ledger), printed_seeds=1)
    assert len(done) == 8 and (fewer["seeds"], fewer["printed"]["seeds"]) == (2, 1)
    assert fewer["tasks"] == found["tasks"] and fewer["printed"]["tasks"]["sponge_1"]["success"] == 1.0
    with pytest.raises(SoftformError, match="sponge_1"):
        shaping(["sponge"], range(1), InProcess(), lambda line: None)


def test_a_run_of_other_parameters_is_another_run(monkeypatch):
    before = [settings_of(Job("sponge_1", which, 1)) for which in ("ours", "printed")]
    assert before[0] != before[1] and before[0] != settings_of(Job("sponge_1", "ours", 2))
    assert before[0] != settings_of(Job("sponge_2", "ours", 1))
    monkeypatch.setattr(bench, "Ours", lambda: bench.Printed(gain=math.pi))
    assert settings_of(Job("sponge_1", "ours", 1)) != before[0]


def test_the_length_of_a_linear_object_bent_in_depth_is_told_within_a_hundredth(monkeypatch):
    """Between grippers, as of Table 1; by the seed whose ends tilt most in depth, of which it was 15 % longer."""
    monkeypatch.setattr(studies, "_LINEAR", {"hidria_part": studies._LINEAR["hidria_part"]})
    found = studies.STUDIES["dlo"](range(3002, 3003), lambda line: None)
    assert found["objects"]["hidria_part"]["seen"] == 1
    assert found["length_error"] < 0.01 and found["radius_error"] < 0.04
