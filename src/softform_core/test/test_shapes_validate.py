import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.shapes.validate import MAX_POINTS, check_points, check_target

SHEET = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.3, 0.0], [0.3, 0.3, 0.05]])


@pytest.fixture(scope="module")
def robot():
    return load_robot("membrane")


def test_a_sheet_is_accepted_as_it_is(robot):
    assert np.array_equal(check_target(SHEET.tolist(), robot), SHEET)


@pytest.mark.parametrize(
    ("points", "says"),
    [
        ([], "empty"),
        (np.empty((0, 3)), "empty"),
        (SHEET[:3], "3 points; at least 4"),
        (SHEET[:, :2], "shape (4, 2)"),
        (SHEET.ravel(), "shape (12,)"),
        ("points", "not an array of numbers"),
        ([[0, 0, 0], [1, 2]], "not an array of numbers"),
        (np.ones((9, 3)), "coincide"),
        (np.full((9, 3), 1e6), "coincide"),
        (np.outer(np.arange(9), [1.0, 2.0, 3.0]), "one line"),
        (np.outer(np.arange(9), [1.0, 2.0, 3.0]) + 40.0, "one line"),
        (np.where(np.arange(12).reshape(4, 3) == 7, np.nan, SHEET), "point 2"),
        (np.where(np.arange(12).reshape(4, 3) == 7, np.inf, SHEET), "point 2"),
        (np.broadcast_to(np.float32(0.0), (MAX_POINTS + 1, 3)), f"at most {MAX_POINTS}"),
    ],
)
def test_unusable_points_are_rejected_with_the_reason(points, says):
    with pytest.raises(SoftformError) as caught:
        check_points(points)
    assert says in str(caught.value)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("factor", "says"),
    [
        *((1000.0, "in millimetres"), (0.001, "converted from millimetres twice"), (1e6, "too large")),
        *((1e-6, "too small"), (100.0, "in centimetres"), (0.01, "converted from centimetres twice")),
    ],
)
def test_a_wrong_unit_is_named(robot, factor, says):
    with pytest.raises(SoftformError, match=says):
        check_target(SHEET * factor, robot)


def test_a_target_may_lie_anywhere(robot):
    assert len(check_target(SHEET + [50.0, -20.0, 3.0], robot)) == 4


numbers = st.one_of(st.integers(-5, 5).map(float), st.floats())


@given(arrays(np.float64, st.tuples(st.integers(0, 12), st.integers(1, 4)), elements=numbers))
def test_what_is_accepted_is_finite_and_spans_a_surface(points):
    try:
        accepted = check_points(points)
    except SoftformError:
        return
    assert accepted.shape == points.shape
    assert accepted.shape[1] == 3
    assert len(accepted) >= 4
    assert np.isfinite(accepted).all()
    assert np.linalg.matrix_rank((accepted - accepted.mean(axis=0)) / np.abs(accepted).max()) >= 2
