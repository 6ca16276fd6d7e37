"""Real layers: those that ship and drawn ones differ from the simulator's, and hold."""

import numpy as np
import pytest

from softform_core.bodies.layered.grid import mesh_torso
from softform_core.bodies.layered.simulator import RealLayers, build_real_layers
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_core.simulation.simulated_body import equilibrium_points

ROBOT = load_robot("mannequin", "surface")
COARSE = ROBOT.body.model_copy(update={"cell": 0.02})
PRESSURES = ROBOT.actuators_of(np.array([[6e3, 8e3, 5e3, 4e3, 7e3, 9e3, 3e3, 6e3, 2e3]]))


def test_without_differences_it_is_the_simulators():
    real = build_real_layers(COARSE, RealLayers())
    np.testing.assert_array_equal(real.rest_vertices, COARSE.simulator().layers.rest_vertices)
    np.testing.assert_array_equal(real.gradients, COARSE.simulator().layers.gradients)


def test_a_chamber_that_is_glued_off_its_place_takes_the_mesh_along():
    """The border of the first chamber moves by what is said, or most of it, and the rims stay."""
    nominal = build_real_layers(COARSE, RealLayers()).rest_vertices
    moved = build_real_layers(COARSE, RealLayers(shift_upwards=[0.004] + 14 * [0.0])).rest_vertices - nominal
    mesh = mesh_torso(COARSE)
    core = moved[: len(mesh.turns) * len(mesh.heights)].reshape(len(mesh.turns), len(mesh.heights), 3)
    first = mesh.chambers[0] == 0
    middle = np.flatnonzero(first.any(axis=1)).mean().round().astype(int), np.flatnonzero(first.any(axis=0))
    assert 0.002 < core[middle[0], middle[1], 2].mean() <= 0.004
    assert np.abs(core[:, [0, -1]]).max() < 1e-12


def test_drawn_layers_differ_and_have_a_shape():
    drawn = [COARSE.drawn_reality(np.random.default_rng(seed)) for seed in range(2)]
    assert drawn[0] != drawn[1]
    for one in drawn:
        real = COARSE.real_simulator(one)
        bulge = np.linalg.norm(equilibrium_points(real, PRESSURES) - real.points(real.rest[None]), axis=-1)
        assert 0.005 < bulge.max() < 0.06


def test_left_and_right_of_the_shipped_kind_of_reality_are_unlike():
    real = COARSE.real_simulator(RealLayers(shift_around={"in_turn": [0.003, -0.001, 0.002]}))
    shape = equilibrium_points(real, PRESSURES)[0]
    assert abs(shape[shape[:, 1].argmax(), 1] + shape[shape[:, 1].argmin(), 1]) > 1e-5


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"shift_around": [0.001, 0.002]}, "shift_around has 2 numbers, this robot needs 15"),
        ({"thickness_scale": 0.0}, "thickness_scale"),
        ({"tension_scale": -1.0}, "tension_scale"),
    ],
)
def test_bad_fields_are_rejected_by_name(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        build_real_layers(COARSE, RealLayers(**fields))


def test_shifts_that_fold_the_mesh_are_rejected():
    with pytest.raises(SoftformError, match="fold the mesh"):
        build_real_layers(COARSE, RealLayers(shift_upwards=[0.2] + 14 * [0.0]))
