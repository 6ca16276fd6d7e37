"""Global search: finds what one start misses, ends early."""

from dataclasses import replace

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.inverse.ik_options import Termination
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.multi_start import solve_globally
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
    told = []
    result = solve_globally(
        membrane,
        shape_of(membrane, hidden),
        replace(options, max_seconds=60.0),
        starts=50,
        on_start=lambda number, best: told.append((number, best.mean_error_mm)),
    )
    assert result.mean_error_mm < 0.01 and result.actuation == pytest.approx(hidden, abs=5.0)
    # Neither the time nor the starts were used up.
    assert result.termination.finished and result.seconds < 60.0 and 3 <= len(told) < 10
    assert [number for number, _ in told] == list(range(1, len(told) + 1))


def test_a_search_ends_within_the_tolerance_at_the_first_start(membrane, shape_of, options):
    target, told = shape_of(membrane, hidden_actuation(1)), []
    near_enough = replace(options, tolerance_mm=0.05)
    result = solve_globally(membrane, target, near_enough, starts=50, on_start=lambda *start: told.append(start))
    assert result.termination is Termination.TOLERANCE_REACHED and len(told) == 1


def test_many_feature_solutions_are_distinguished_by_the_posture(membrane, options):
    """Two feature points leave a valley of solutions; each start ends elsewhere in it, the posture decides."""
    hidden, posture = hidden_actuation(2), hidden_actuation(3)
    uv = np.array([[0.5, 0.5], [0.2, 0.8]])
    features = FeaturePoints.of(uv, membrane.at(uv).points(hidden) / MM_PER_M)
    wishes = replace(options, preferred_actuation=posture, preference_mm2=0.1)
    one = solve_inverse_kinematics(membrane, None, wishes, features=features)
    best = solve_globally(membrane, None, wishes, features, starts=8)
    assert best.merit <= one.merit * 1.01 and best.max_error_mm < 1.0


def test_a_search_without_time_has_its_first_start(corrected_membrane, shape_of, options):
    target, told = shape_of(corrected_membrane, hidden_actuation(4)), []
    no_time = replace(options, max_seconds=1e-9)
    result = solve_globally(corrected_membrane, target, no_time, on_start=lambda *start: told.append(start))
    assert result.termination is Termination.TIME_LIMIT and not told
    assert (result.actuation == options.start()).all()


def test_a_search_can_be_stopped(membrane, shape_of, options):
    target, told = shape_of(membrane, hidden_actuation(5)), []
    result = solve_globally(
        membrane,
        target,
        options,
        starts=50,
        on_start=lambda *start: told.append(start),
        should_stop=lambda: len(told) >= 2,
    )
    assert result.termination is Termination.CANCELLED and len(told) == 2
    assert result.mean_error_mm < 0.01
    at_once = solve_globally(membrane, target, options, should_stop=lambda: True)
    assert at_once.termination is Termination.CANCELLED
    assert (at_once.actuation == 2500.0).all()


@pytest.mark.parametrize("starts", [0, 10_001])
def test_a_number_of_starts_that_makes_no_sense_is_rejected(membrane, options, starts):
    with pytest.raises(SoftformError, match="starts"):
        solve_globally(membrane, None, options, starts=starts)
