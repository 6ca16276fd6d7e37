"""Global search: finds what one start misses, ends early, goes on where the time was up."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.inverse import search_of, solve_inverse_kinematics
from softform_core.inverse.multi_start import GlobalSearch, solve_globally
from softform_core.shapes.features import FeaturePoints
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M

CHAMBERS = 9


def hidden_actuation(seed):
    return np.random.default_rng(seed).uniform(0.0, 5000.0, CHAMBERS)


@pytest.fixture(scope="module")
def snapping(membrane_weights):
    """A membrane whose first chamber rises, sinks from a third of its range on, and rises further near the end."""
    coupling, bumps = membrane_weights.weights
    steep, bump = 8.0 * coupling[:1], bumps[:, :1]
    return ForwardPipeline(
        replace(
            membrane_weights,
            weights=[
                np.concatenate([steep, coupling[1:], steep, steep]),
                np.concatenate([0.5 * bump, bumps[:, 1:], -0.4 * bump, 0.75 * bump], axis=1),
            ],
            biases=[np.r_[-1.0, np.zeros(8), -4.0, -7.0], membrane_weights.biases[1]],
        ),
        SHEET.samples(400),
    )


def test_a_search_finds_what_one_start_misses(snapping, shape_of, options):
    hidden = hidden_actuation(3)
    hidden[0] = 4900.0
    target = shape_of(snapping, hidden)
    one = solve_inverse_kinematics(snapping, target, options)
    assert one.mean_error_mm > 0.5 and one.actuation[0] < 3000.0
    result = solve_globally(snapping, target, options, starts=30)
    assert result.mean_error_mm < 0.01 and result.actuation == pytest.approx(hidden, abs=10.0)


def test_a_search_ends_when_starts_agree(membrane, shape_of, options):
    hidden = hidden_actuation(0)
    search = GlobalSearch(membrane, search_of(shape_of(membrane, hidden)), options, starts=50)
    told = []
    result = search.run(60.0, lambda number, best: told.append((number, best.mean_error_mm)))
    assert result.mean_error_mm < 0.01 and result.actuation == pytest.approx(hidden, abs=5.0)
    assert search.is_finished and search.agreeing >= 3 and len(search.candidates) < 10
    assert [number for number, _ in told] == list(range(1, len(search.candidates) + 1))


def test_a_search_ends_within_the_tolerance_at_the_first_start(membrane, shape_of, options):
    target = shape_of(membrane, hidden_actuation(1))
    search = GlobalSearch(membrane, search_of(target), replace(options, tolerance_mm=0.05), starts=50)
    assert search.run(60.0).termination is Termination.TOLERANCE_REACHED and len(search.candidates) == 1


def test_many_feature_solutions_are_distinguished_by_the_posture(membrane, options):
    """Two feature points leave a valley of solutions; each start ends elsewhere in it, the posture decides."""
    hidden, posture = hidden_actuation(2), hidden_actuation(3)
    uv = np.array([[0.5, 0.5], [0.2, 0.8]])
    features = FeaturePoints.of(uv, membrane.at(uv).points(hidden) / MM_PER_M)
    wishes = replace(options, preferred_actuation=posture, preference_mm2=0.1)
    one = solve_inverse_kinematics(membrane, None, wishes, features=features)
    best = solve_globally(membrane, None, wishes, features, starts=8)
    assert best.merit <= one.merit * 1.01 and best.max_error_mm < 1.0


def test_a_search_goes_on_where_the_time_was_up(corrected_membrane, shape_of, options):
    target = shape_of(corrected_membrane, hidden_actuation(4))
    short = replace(options, relative_decrease=1e-3)
    whole = GlobalSearch(corrected_membrane, search_of(target), short, starts=5)
    pieces = GlobalSearch(corrected_membrane, search_of(target), short, starts=5)
    best = whole.run(60.0)
    made = []
    for seconds in (1e-9, 1e-9, 60.0):
        resumed = pieces.run(seconds)
        made.append(len(pieces.candidates))
    assert made == [0, 0, len(whole.candidates)] and pieces.is_finished
    assert all((a.start == b.start).all() for a, b in zip(pieces.candidates, whole.candidates, strict=True))
    assert resumed.mean_error_mm == pytest.approx(best.mean_error_mm, abs=1e-6)


def test_a_search_can_be_stopped(membrane, shape_of, options):
    search = GlobalSearch(membrane, search_of(shape_of(membrane, hidden_actuation(5))), options, starts=50)
    result = search.run(60.0, should_stop=lambda: len(search.candidates) >= 2)
    assert result.termination is Termination.CANCELLED and len(search.candidates) == 2 and not search.is_finished
    assert result.mean_error_mm < 0.01
    at_once = GlobalSearch(membrane, search_of(shape_of(membrane, hidden_actuation(5))), options)
    assert at_once.run(60.0, should_stop=lambda: True).termination is Termination.CANCELLED
    assert (at_once.best.actuation == 2500.0).all()


@pytest.mark.parametrize("starts", [0, 10_001])
def test_a_number_of_starts_that_makes_no_sense_is_rejected(membrane, options, starts):
    with pytest.raises(SoftformError, match="starts"):
        GlobalSearch(membrane, None, options, starts=starts)
