"""A solve that frees a part of its inputs: those with equal bounds are held, to the bit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softform_core.errors import SoftformError
from softform_core.forward.forward_model import ForwardModel
from softform_core.inverse.closest_points import closest_points_on
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.inverse.multi_start import solve_globally
from softform_core.inverse.servo import Servo, ServoSettings
from softform_core.inverse.servo_target import ServoTarget
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M

PULL_MAX = 0.02
SIDE = 12
REST = np.concatenate([200.0 * SHEET.samples(SIDE**2) - 100.0, np.zeros((SIDE**2, 1))], axis=1)
MODES = np.stack(
    [np.sin(REST[:, 0] / 60.0), np.cos(REST[:, 1] / 50.0), np.sin((REST[:, 0] + REST[:, 1]) / 90.0)], axis=1
)
MEMORY = 0.2


class PriorAndCurrent(ForwardModel):
    """A sheet with memory (paper 004): what it was before, [prior, current], stays in its shape by a fifth."""

    @property
    def inputs(self):
        return tuple(f"{when}_{tendon}" for when in ("prior", "current") for tendon in (1, 2, 3))

    def forward(self, actuation):
        prior, current = np.split(actuation / PULL_MAX, 2, axis=1)
        effect = np.tanh(current) + MEMORY * np.tanh(prior - current)
        points = np.broadcast_to(REST, (len(actuation), *REST.shape)).copy()
        points[:, :, 2] += 30.0 * effect @ MODES.T
        return SimpleNamespace(points=points, prior=prior, current=current)

    def jacobian(self, state):
        memory = MEMORY * np.cosh(state.prior - state.current) ** -2
        slope = 30.0 / PULL_MAX * np.concatenate([memory, np.cosh(state.current) ** -2 - memory], axis=1)
        lift = np.concatenate([MODES, MODES], axis=1) * slope[:, None, :]
        return np.stack([np.zeros_like(lift), np.zeros_like(lift), lift], axis=2)


MODEL = PriorAndCurrent()
LOW, HIGH = np.full(6, -PULL_MAX), np.full(6, PULL_MAX)


def held_at(prior):
    """Options that hold the prior half."""
    return IkOptions(np.r_[prior, LOW[3:]], np.r_[prior, HIGH[3:]], relative_decrease=1e-9)


def shape_at(actuation):
    return Shape(MODEL.forward(actuation[None]).points[0] / MM_PER_M, None, SHEET.triangles(SIDE**2))


@pytest.fixture(scope="module")
def hidden():
    return np.array([0.013, -0.009, 0.017, -0.004, 0.011, 0.006])


def test_the_current_actuation_is_found_from_the_prior_one(hidden):
    result = solve_inverse_kinematics(MODEL, shape_at(hidden), held_at(hidden[:3]))
    np.testing.assert_allclose(result.actuation, hidden, atol=1e-5)
    assert result.actuation[:3].tobytes() == hidden[:3].tobytes()
    another = solve_inverse_kinematics(MODEL, shape_at(hidden), held_at(-hidden[:3]))
    assert (
        np.abs(another.actuation[3:] - hidden[3:]).max() > 1e-3
    )  # the same shape takes another pull after another past
    assert another.mean_error_mm < 0.01


def test_a_global_search_and_a_servo_hold_inputs(hidden):
    target = shape_at(hidden)
    found = solve_globally(MODEL, target, held_at(hidden[:3]), starts=5)
    np.testing.assert_allclose(found.actuation, hidden, atol=1e-5)
    options, now = held_at(hidden[:3]), [0.0]
    servo = Servo(ServoSettings(options.actuation_min, options.actuation_max, np.full(6, 10.0)), lambda: now[0])
    servo.resume_from(np.zeros(6))
    servo.aim(ServoTarget(1, 0.0, closest_points_on(target)))
    now[0] = 0.02
    servo.refine(MODEL, np.inf)
    command = servo.command()
    assert command.converged and command.errors.mean_mm < 0.01
    assert command.actuation[:3].tobytes() == hidden[:3].tobytes()


def test_what_is_held_is_neither_weak_nor_at_a_bound_nor_paid_for(hidden):
    options = replace(
        held_at(hidden[:3]), previous_actuation=np.zeros(6), smoothness_mm2=1e-9, most_change=np.full(6, 0.05)
    )
    result = solve_inverse_kinematics(MODEL, shape_at(hidden), options)
    np.testing.assert_allclose(result.actuation, hidden, atol=1e-4)
    assert result.merit < 1e-6
    assert not result.reachability.active_bounds.any()
    assert not result.reachability.weak_directions[:, :3].any()


def test_inputs_that_are_all_held_leave_the_pose(hidden):
    shape = shape_at(hidden)
    moved = replace(shape, points=shape.points + [0.003, -0.002, 0.004])
    options = replace(IkOptions(hidden, hidden), fix_pose=False, relative_decrease=1e-9)
    result = solve_inverse_kinematics(MODEL, moved, options)
    assert result.actuation.tobytes() == hidden.tobytes()
    assert result.max_error_mm < 0.01


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    held=st.lists(st.booleans(), min_size=6, max_size=6),
    free_pose=st.booleans(),
    goes_by_points=st.booleans(),
)
def test_held_inputs_come_back_to_the_bit(seed, held, free_pose, goes_by_points):
    random = np.random.default_rng(seed)
    values, wanted, start = random.uniform(LOW, HIGH, (3, 6))
    options = IkOptions(
        np.where(held, values, LOW), np.where(held, values, HIGH), initial_actuation=start, fix_pose=not free_pose
    )
    shape = shape_at(wanted)
    features = FeaturePoints.of(SHEET.samples(SIDE**2), shape.points) if goes_by_points else None
    result = solve_inverse_kinematics(MODEL, None if goes_by_points else shape, options, features=features)
    assert result.actuation[held].tobytes() == values[held].tobytes()
    assert (result.actuation >= LOW).all() and (result.actuation <= HIGH).all()
    assert np.isfinite(result.reachability.unreachable_mm)


def test_bounds_in_the_wrong_order_are_rejected(hidden):
    with pytest.raises(SoftformError, match="ordered"):
        solve_inverse_kinematics(MODEL, shape_at(hidden), IkOptions(HIGH, LOW))
