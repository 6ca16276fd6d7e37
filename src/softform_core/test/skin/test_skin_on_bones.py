"""Skins of robots without a surface: models that know the bones have their points as targets; others say so."""

import numpy as np
import pytest
import trimesh

from softform_core.errors import SoftformError
from softform_core.forward.robot_models import NONE, ModelRequest, TipModels, open_models
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.ik_options import IkOptions
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.paths import home
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.shapes.skin_store import save_skin, skin_path
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_core.skin.bind import bind_skin
from softform_core.units import MM_PER_M

SLEEVED = "three_chamber", "tendon_rod", "planar_fingers"


@pytest.fixture(name="skins", scope="module")
def skins_fixture(tmp_path_factory):
    """A tube round each robot as its skin `sleeve`, in a home of its own."""
    folder, skins = tmp_path_factory.mktemp("models"), {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("softform_core.shapes.skin_store.models_of", lambda robot: folder / robot)
        for name in SLEEVED:
            robot = load_robot(name)
            body = robot.body.simulator()
            rest = body.bones(body.rest[None])[0]
            tube = trimesh.creation.cylinder(0.1 * robot.body.size, segment=[rest[0, 0], rest[-1, 1]], sections=8)
            fine = tube.subdivide()
            skins[name] = bind_skin(Shape.from_mesh(fine.vertices, fine.faces), robot).skin
            skins[name].card["robot_fingerprint"] = robot.fingerprint()
            save_skin(skin_path(name, "sleeve"), skins[name])
        yield skins


def middling(robot, part=0.6):
    return robot.actuation_min + part * np.linspace(0.5, 1.0, robot.degrees_of_freedom) * (
        robot.actuation_max - robot.actuation_min
    )


def some_points(robot, skin, count=4):
    """Places of a skin, with the tip among them."""
    random = np.random.default_rng(0)
    triangle = random.integers(len(skin.triangles), size=count)
    uv = skin.parameters(triangle, random.dirichlet(np.ones(3), size=count))
    names = ["sleeve"] * count + ["tip"]
    return uv, FeaturePoints.of([*uv, [0.5, 0.5]], np.zeros((count + 1, 3)), None, names).on(robot)


def opened(robot, kind, sim_to_real=NONE):
    models = open_models(kind, ModelRequest(robot, 1000, None, sim_to_real))
    assert isinstance(models, TipModels)
    return models


@pytest.mark.parametrize("name", SLEEVED)
@pytest.mark.parametrize("kind", ["fem", "learned"])
def test_points_of_a_skin_move_as_their_derivative_says(skins, name, kind):
    robot, skin = load_robot(name), skins[name]
    _, features = some_points(robot, skin)
    term = FeatureTerm.of(opened(robot, kind).current, features)
    actuation = middling(robot)
    jacobian = term.jacobian(term.match(actuation, RigidTransform()))
    for axis, span in enumerate(1e-4 * (robot.actuation_max - robot.actuation_min)):
        step = span * np.eye(robot.degrees_of_freedom)[axis]
        ahead, behind = (term.match(actuation + sign * step, RigidTransform()).points for sign in (1.0, -1.0))
        moved = (ahead - behind) / (2.0 * span)
        # Tips are learned with derivatives of their own (N_J): of a skin's points they are exact.
        np.testing.assert_allclose(jacobian[:4, :, axis], moved[:4], atol=1e-4 * np.abs(jacobian[:4, :, axis]).max())


@pytest.mark.parametrize("name", SLEEVED)
def test_by_simulation_they_lie_where_the_skin_lies_on_the_body_s_elements(skins, name):
    robot, skin = load_robot(name), skins[name]
    uv, features = some_points(robot, skin)
    actuation = middling(robot)
    body = robot.body.simulator()
    bones = body.bones(equilibrium_unknowns(body, robot.actuators_of(actuation)[None]))[0]
    triangle, weights = skin.places(uv)
    shown = np.einsum("mc,mcx->mx", weights, skin.points(bones.reshape(-1, 3))[skin.triangles[triangle]])
    match = FeatureTerm.of(opened(robot, "fem").current, features).match(actuation, RigidTransform())
    np.testing.assert_allclose(match.points[:4] / MM_PER_M, shown, atol=1e-9)


def test_a_learned_line_carries_its_bones_and_the_simulator_says_their_roll(skins):
    robot = load_robot("tendon_rod")
    models, actuation = opened(robot, "learned"), middling(robot)
    line, bones = opened(robot, "fem").bones, models.bones
    simulated, learned = (each.forward(actuation[None]).points[0].reshape(-1, 3, 3) for each in (line, bones))
    np.testing.assert_allclose(learned[:, 2] - learned[:, 0], simulated[:, 2] - simulated[:, 0], atol=1e-9)
    assert np.abs(learned - simulated).max() < 0.01 * MM_PER_M * robot.body.size
    along = np.array([[0.0, 1.0]])
    at_end = models.current.at(along + [2.0, 0.0]).forward(actuation[None]).points[0, 0]
    np.testing.assert_allclose(learned[-1, 1], at_end, atol=1e-9)


@pytest.mark.parametrize("name", SLEEVED[:2])
def test_a_dragged_point_of_a_skin_is_reached(skins, name):
    robot, skin = load_robot(name), skins[name]
    uv, features = some_points(robot, skin, 1)
    model = opened(robot, "fem").current
    wanted = FeatureTerm.of(model, features).match(middling(robot), RigidTransform()).points[:1] / MM_PER_M
    features = FeaturePoints.of(uv, wanted, None, ["sleeve"]).on(robot)
    options = IkOptions(robot.actuation_min, robot.actuation_max)
    result = solve_inverse_kinematics(model, None, options, features=features)
    assert result.mean_error_mm < 0.02


def test_a_model_that_does_not_know_the_bones_says_which_does(skins):
    robot = load_robot("three_chamber")
    _, features = some_points(robot, skins[robot.name])
    corrected = opened(robot, "learned", str(home() / "models" / robot.name / "rig_default"))
    assert corrected.bones is None and corrected.tip.sim_to_real is not None
    with pytest.raises(SoftformError, match="does not tell how what a skin rides on moves") as told:
        FeatureTerm.of(corrected.current, features)
    assert "model:=fem" in told.value.next_step
    with pytest.raises(SoftformError, match="no centre line"):
        corrected.current.at(np.array([[2.0, 0.5]]))
