"""Skins: bound, they lie where they were; their derivatives are those of finite differences; places are targets."""

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from softform_core.cli.skin import skin as skin_command
from softform_core.errors import SoftformError
from softform_core.evaluation.look import resting_mesh
from softform_core.forward.one_point import MeanPoint
from softform_core.geometry.rigid import RigidTransform
from softform_core.inverse.feature_term import FeatureTerm
from softform_core.inverse.inverse import solve_inverse_kinematics
from softform_core.registration.rest_surface import rest_surface
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints, anchored_parameters
from softform_core.shapes.shape import Shape
from softform_core.shapes.skin_store import load_skin, save_skin, skin_names, skin_path
from softform_core.shapes.write import write_ply
from softform_core.simulation.simulated_body import equilibrium_unknowns
from softform_core.skin.bind import bind_skin
from softform_core.surface.skin import Skin
from softform_core.units import MM_PER_M

MEMBRANE = load_robot("membrane")
RANDOM = np.random.default_rng(0)
PRESSURES = np.array([4e3, 1e3, 2e3, 0.5e3, 4.5e3, 1.5e3, 3e3, 0.6e3, 2e3])


def dome(robot, height=0.012):
    """A bumpy mesh over a sheet at rest, m: offset and slanted everywhere, as a character's face is."""
    rest = resting_mesh(robot)
    x, y = rest.points[:, :2].T / np.ptp(rest.points[:, :2], axis=0).max()
    lifted = rest.points + np.stack([0.1 * height * np.sin(9.0 * y), 0.0 * x, height * (1.5 + np.sin(7.0 * x))], axis=1)
    return Shape.from_mesh(lifted, rest.faces)


def sleeve(robot, thickness=0.004):
    rest = resting_mesh(robot)
    outward = (rest.points - rest.points.mean(axis=0)) * [1.0, 1.0, 0.0]
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    return Shape.from_mesh(rest.points + thickness * outward, rest.faces)


def at_rest(robot, skin):
    uv = robot.patches.samples(skin.samples)
    return robot.patches.evaluate(rest_surface(robot).control_points, uv)


@pytest.fixture(scope="module", name="face")
def face_fixture():
    return bind_skin(dome(MEMBRANE), MEMBRANE).skin


@pytest.fixture(scope="module", name="arm")
def arm_fixture():
    return load_robot("manipulator")


@pytest.fixture(name="kept")
def kept_fixture(face, tmp_path, monkeypatch):
    """The face as `face` of the membrane, in a home of its own."""
    monkeypatch.setattr("softform_core.shapes.skin_store.models_of", lambda robot: tmp_path / robot)
    face.card["robot_fingerprint"] = MEMBRANE.fingerprint()
    save_skin(skin_path("membrane", "face"), face)
    return tmp_path


def some_places(skin, count=5):
    triangle = RANDOM.integers(len(skin.triangles), size=count)
    return skin.parameters(triangle, RANDOM.dirichlet(np.ones(3), size=count))


def test_a_bound_skin_lies_where_it_was_and_moves_rigidly_with_the_robot(face):
    rest = at_rest(MEMBRANE, face)
    np.testing.assert_allclose(face.points(rest), face.vertices, atol=1e-12)
    motion = RigidTransform.from_pose([0.1, -0.2, 0.3, *(np.array([0.1, 0.7, -0.3, 0.6]) / np.sqrt(0.95))])
    np.testing.assert_allclose(face.points(motion.apply(rest)), motion.apply(face.vertices), atol=1e-12)


@pytest.mark.parametrize("bones", [0, 6])
def test_an_arm_has_a_sleeve_by_places_and_by_bones(arm, bones):
    skin = bind_skin(sleeve(arm), arm, bones=bones).skin
    rest = at_rest(arm, skin)
    np.testing.assert_allclose(skin.points(rest), skin.vertices, atol=1e-12)
    turned = RigidTransform.from_pose([0.0, 0.0, 0.0, 0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    np.testing.assert_allclose(skin.points(turned.apply(rest)), turned.apply(skin.vertices), atol=1e-12)


def test_bones_follow_a_twist_which_a_polyline_alone_would_not_tell(arm):
    """The paper's bones have an x axis only; its roll is the third point's."""
    skin = bind_skin(sleeve(arm), arm, bones=6).skin
    rest = at_rest(arm, skin)
    axis = rest.mean(axis=0)
    angle = 0.5 * (rest[:, 2] - rest[:, 2].min()) / np.ptp(rest[:, 2])
    x, y = (rest - axis)[:, :2].T
    across = np.cos(angle) * x - np.sin(angle) * y, np.sin(angle) * x + np.cos(angle) * y
    twisted = np.stack([axis[0] + across[0], axis[1] + across[1], rest[:, 2]], axis=1)
    moved = skin.points(twisted) - axis
    before = skin.vertices - axis
    last = np.abs(skin.vertices[:, 2] - rest[:, 2].max()) < 1e-3
    turn = np.arctan2(moved[last, 1], moved[last, 0]) - np.arctan2(before[last, 1], before[last, 0])
    assert last.sum() > 5
    np.testing.assert_allclose((turn + np.pi) % (2 * np.pi) - np.pi, 0.5, atol=0.02)


@pytest.mark.parametrize("name", ["three_chamber", "tendon_rod", "planar_fingers"])
def test_a_skin_of_a_robot_without_a_surface_rides_on_the_elements_of_its_body(name):
    robot = load_robot(name)
    body = robot.body.simulator()
    rest = body.bones(body.rest[None])[0]
    tube = trimesh.creation.cylinder(0.1 * robot.body.size, segment=[rest[0, 0], rest[-1, 1]], sections=12)
    skin = bind_skin(Shape.from_mesh(tube.vertices, tube.faces), robot).skin
    assert skin.samples == rest.size // 3
    np.testing.assert_allclose(skin.points(rest.reshape(-1, 3)), skin.vertices, atol=1e-12)
    values = robot.actuator_min + np.linspace(0.1, 0.6, len(robot.actuators)) * np.ptp(
        [robot.actuator_min, robot.actuator_max], axis=0
    )
    bent = body.bones(equilibrium_unknowns(body, values[None]))[0]
    moved = skin.points(bent.reshape(-1, 3))
    last = np.linalg.norm(skin.vertices - rest[-1, 1], axis=1).argmin()
    assert np.linalg.norm(bent[-1, 1] - rest[-1, 1]) > 0.005
    assert np.linalg.norm(moved[last] - bent[-1, 1]) < 0.001, "the middle of its end stays at the end of the body"
    ring = np.linalg.norm(skin.vertices - rest[-1, 1], axis=1) < 0.11 * robot.body.size
    shape = np.linalg.norm(moved[ring][:, None] - moved[ring], axis=2)
    before = np.linalg.norm(skin.vertices[ring][:, None] - skin.vertices[ring], axis=2)
    np.testing.assert_allclose(shape, before, atol=0.001, err_msg="its end is rigid")
    with pytest.raises(SoftformError, match="bones of its own"):
        bind_skin(Shape.from_mesh(tube.vertices, tube.faces), robot, bones=4)


@pytest.mark.parametrize("bones", [None, 6])
def test_its_derivatives_are_those_of_finite_differences(face, arm, bones):
    robot = MEMBRANE if bones is None else arm
    face = face if bones is None else bind_skin(sleeve(arm), arm, bones=bones).skin
    surface = at_rest(robot, face) + 0.002 * RANDOM.normal(size=(face.samples, 3))
    moves = RANDOM.normal(size=(face.samples, 3, 4))
    step = 1e-7
    numeric = [
        (face.points(surface + step * move) - face.points(surface - step * move)) / (2.0 * step)
        for move in np.moveaxis(moves, 2, 0)
    ]
    analytic = face.anchors.jacobian(surface, moves)
    np.testing.assert_allclose(analytic, np.stack(numeric, axis=2), atol=1e-5 * np.abs(analytic).max())


def test_parameters_name_each_place_once_and_others_are_rejected(face):
    triangle = np.arange(len(face.triangles))
    for weights in (np.eye(3), [[0.2, 0.3, 0.5]], [[0.5, 0.5, 0.0]]):
        for one in np.asarray(weights):
            found, again = face.places(face.parameters(triangle, np.tile(one, (len(triangle), 1))))
            assert np.array_equal(found, triangle)
            np.testing.assert_allclose(again, np.tile(one, (len(triangle), 1)), atol=1e-9)
    assert face.cells**2 > len(face.triangles)
    with pytest.raises(SoftformError, match="no point u = 1, v = 1"):
        face.places([[1.0, 1.0]])


def test_places_of_a_skin_are_feature_points_with_the_model_s_derivative(face, kept, exact_membrane):
    uv = some_places(face)
    names = ["face"] * 4 + ["sheet"]
    features = FeaturePoints.of([*uv[:4], [0.5, 0.5]], np.zeros((5, 3)), output=names).on(MEMBRANE)
    term = FeatureTerm.of(exact_membrane, features)
    at = term.match(PRESSURES, RigidTransform())
    whole = face.points(exact_membrane.at(MEMBRANE.patches.samples(face.samples)).points(PRESSURES) / MM_PER_M)
    triangle, weights = face.places(uv[:4])
    expected = np.einsum("mc,mcx->mx", weights, whole[face.triangles[triangle]])
    np.testing.assert_allclose(at.points[:4] / MM_PER_M, expected, atol=1e-9)
    np.testing.assert_allclose(at.points[4], exact_membrane.at(np.array([[0.5, 0.5]])).points(PRESSURES)[0])
    jacobian, step = term.jacobian(at), 1.0
    for axis in range(9):
        more, less = PRESSURES.copy(), PRESSURES.copy()
        more[axis], less[axis] = more[axis] + step, less[axis] - step
        both = [term.match(one, RigidTransform()).points for one in (more, less)]
        np.testing.assert_allclose(
            jacobian[:, :, axis], (both[0] - both[1]) / (2 * step), atol=1e-4 * np.abs(jacobian).max()
        )


def test_a_point_of_a_skin_is_led_as_the_mean_of_points_is(face, kept, exact_membrane):
    uv = some_places(face, 1)
    parameters, place = anchored_parameters(MEMBRANE, "face", uv)
    led = MeanPoint(exact_membrane.at(parameters), place)
    whole = face.points(exact_membrane.at(MEMBRANE.patches.samples(face.samples)).points(PRESSURES) / MM_PER_M)
    triangle, weights = face.places(uv)
    state = led.forward(np.stack([PRESSURES, 0.5 * PRESSURES]))
    np.testing.assert_allclose(
        state.points[0, 0] / MM_PER_M, weights[0] @ whole[face.triangles[triangle[0]]], atol=1e-9
    )
    step = 1.0 * np.eye(9)
    slope = led.forward(PRESSURES + step).points - led.forward(PRESSURES - step).points
    jacobian = led.jacobian(state)
    assert jacobian.shape == (2, 1, 3, 9)
    np.testing.assert_allclose(jacobian[0, 0], slope[:, 0].T / 2.0, atol=1e-4 * np.abs(jacobian).max())


def test_a_dragged_point_of_the_skin_is_reached(face, kept, membrane, options):
    uv = some_places(face, 3)
    whole = face.points(membrane.at(MEMBRANE.patches.samples(face.samples)).points(PRESSURES) / MM_PER_M)
    triangle, weights = face.places(uv)
    wanted = np.einsum("mc,mcx->mx", weights, whole[face.triangles[triangle]])
    features = FeaturePoints.of(uv, wanted, output=["face"] * 3).on(MEMBRANE)
    result = solve_inverse_kinematics(membrane, None, options, features=features)
    assert result.mean_error_mm < 0.05


def test_a_skin_on_disk_is_the_same_and_a_damaged_or_foreign_one_is_told(face, kept):
    assert skin_names(MEMBRANE) == ["face"]
    again = load_skin(MEMBRANE, "face")
    rest = at_rest(MEMBRANE, face)
    assert np.array_equal(again.points(rest), face.points(rest)) and np.array_equal(again.triangles, face.triangles)
    with pytest.raises(SoftformError, match="no skin 'mask' .known: face"):
        load_skin(MEMBRANE, "mask")
    with pytest.raises(SoftformError, match="another description"):
        thicker = MEMBRANE.body.model_copy(update={"thickness": 2.0 * MEMBRANE.body.thickness})
        load_skin(MEMBRANE.model_copy(update={"body": thicker}), "face")
    path = skin_path("membrane", "face")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SoftformError, match="cannot be read"):
        load_skin(MEMBRANE, "face")
    arrays = face.arrays() | {"triangles": face.triangles + 10**6}
    with pytest.raises(ValueError, match="out of range"):
        Skin.of_arrays(arrays)
    with pytest.raises(SoftformError, match="no patch or frame 'mask'"):
        FeaturePoints.of([[0.5, 0.5]], [[0.0, 0.0, 0.0]], output=["mask"]).on(MEMBRANE)


def test_what_cannot_be_a_skin_is_rejected_and_what_may_be_wrong_is_said():
    mesh = dome(MEMBRANE)
    for shape, reason in (
        (Shape(mesh.points), "a cloud"),
        (Shape.from_mesh(mesh.points * 1e3, mesh.faces), "millimetres"),
        (Shape.from_mesh(mesh.points + [2.0, 0.0, 0.0], mesh.faces), "nearest vertex lies"),
    ):
        with pytest.raises(SoftformError, match=reason):
            bind_skin(shape, MEMBRANE)
    with pytest.raises(SoftformError, match="not one"):
        bind_skin(mesh, MEMBRANE, bones=5)
    assert bind_skin(mesh, MEMBRANE).warnings == ("It is open: it has 1 border.",)
    high = bind_skin(Shape.from_mesh(mesh.points + [0.0, 0.0, 0.1], mesh.faces), MEMBRANE)
    assert "more than" in high.warnings[-1] and high.distances.min() > 0.1


def test_the_command_binds_a_file_draws_it_and_keeps_where_it_came_from(tmp_path, monkeypatch):
    monkeypatch.setattr("softform_core.shapes.skin_store.models_of", lambda robot: tmp_path / robot)
    write_ply(tmp_path / "my face.ply", dome(MEMBRANE), "mm")
    result = CliRunner().invoke(skin_command, [str(tmp_path / "my face.ply"), "--robot", "membrane", "--unit", "mm"])
    assert result.exit_code == 0, result.output
    assert "mm from 'membrane' at rest" in result.output and "WARNING: It is open: it has 1 border." in result.output
    assert (tmp_path / "membrane/skins/my_face.png").stat().st_size > 10_000
    bound = load_skin(MEMBRANE, "my_face")
    assert {"command", "git_revision", "created", "file", "unit"} <= set(bound.card)
    np.testing.assert_allclose(bound.vertices, dome(MEMBRANE).points, atol=1e-7)
    again = [str(tmp_path / "my face.ply"), "--robot", "membrane", "--unit", "mm", "--name", "sheet"]
    assert "no name for a skin" in str(CliRunner().invoke(skin_command, again).exception)
