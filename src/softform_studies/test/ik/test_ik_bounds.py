"""No solve ever leaves the bounds or diverges: every corner of the pressure box, each with a target of some kind."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.forward.pipeline import ForwardPipeline
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.inverse import solve_prepared
from softform_core.simulation.sampling import corner_actuations
from softform_core.surface.patch_set import SHEET
from softform_studies.ik.ik_bounds import PropertyCounts, disturbed_targets, solve_from

KINDS = 7


@pytest.fixture(scope="module")
def small(membrane_weights, random_sim_to_real):
    return ForwardPipeline(membrane_weights, SHEET.samples(100), random_sim_to_real(3))


@pytest.mark.long
@pytest.mark.parametrize("kind", range(KINDS))
def test_no_corner_leads_out_of_bounds_or_away(small, options, kind):
    corners = list(corner_actuations(options.actuation_min, options.actuation_max))
    assert len(corners) == 512 and len(np.unique(corners, axis=0)) == 512
    target = list(disturbed_targets(small, options, KINDS, seed=101))[kind]
    counts = PropertyCounts()
    solve_from(corners[kind::KINDS], small, target, counts)
    assert counts.solves >= 512 // KINDS and len(counts.iterations) == counts.solves
    assert counts.bounds_violated == 0 and counts.diverged == 0


def test_what_is_counted_is_seen(small, options, monkeypatch):
    """A solver that leaves the bounds, and one that moves away, are caught."""
    low = replace(options, actuation_max=np.full(9, 1000.0))
    target = replace(next(disturbed_targets(small, options, 1, seed=102)), options=low)
    counts = PropertyCounts()
    with monkeypatch.context() as leaky:
        leaky.setattr("softform_core.inverse.ik_problem.Problem.clip", lambda self, actuation: actuation + 1.0)
        solve_from([low.actuation_min], small, target, counts)
    assert (counts.solves, counts.bounds_violated) == (1, 1)

    def astray(*arguments):
        result = solve_prepared(*arguments)
        return replace(result, **vars(result.problem.evaluate(low.actuation_min, RigidTransform())))

    monkeypatch.setattr("softform_studies.ik.ik_bounds.solve_prepared", astray)
    solve_from([low.actuation_max], small, target, counts)
    assert (counts.solves, counts.diverged) == (2, 1)
