"""A skin on a running stack: bound by the command, shown by the page, and dragged there; the robot moves it."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import trimesh
from console_browser import browsers, tab
from console_pages import Observer, address_of, page_of

from softform_client.client import GoalFailedError, PointPath, ShapeClient
from softform_core.evaluation.look import resting_mesh
from softform_core.paths import home
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.shapes.skin_store import load_skin
from softform_core.shapes.write import write_ply
from softform_core.simulation.simulated_body import equilibrium_unknowns

pytestmark = [pytest.mark.timeout(600), pytest.mark.long]

RAISED = 0.02
"""Height of the skin over the membrane, m."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the shipped model of the membrane and, bound by the command, a skin of it."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(home() / "models" / "membrane", folder / "models" / "membrane")
    rest = resting_mesh(load_robot("membrane"))
    bump = RAISED + 0.01 * np.exp(-(rest.points[:, 0] ** 2 + rest.points[:, 1] ** 2) / 0.003)
    write_ply(folder / "plate.ply", Shape.from_mesh(rest.points + bump[:, None] * [0.0, 0.0, 1.0], rest.faces), "mm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTFORM_CONFIG_PATH", str(folder))
        command = [str(home() / "softform"), "skin", str(folder / "plate.ply"), "--unit", "mm"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert said.returncode == 0, said.stdout + said.stderr
        yield folder


@pytest.fixture
def sleeved(tmp_path, stacks, monkeypatch):
    """A stack of a robot that has no surface, with a skin bound by the command."""
    robot = load_robot("three_chamber")
    shutil.copytree(home() / "models" / robot.name, tmp_path / "models" / robot.name)
    body = robot.body.simulator()
    bones = body.bones(body.rest[None])[0]
    tube = trimesh.creation.cylinder(0.02, segment=[bones[0, 0], bones[-1, 1]], sections=24).subdivide()
    write_ply(tmp_path / "sleeve.ply", Shape.from_mesh(tube.vertices, tube.faces), "mm")
    monkeypatch.setenv("SOFTFORM_CONFIG_PATH", str(tmp_path))
    command = [str(home() / "softform"), "skin", str(tmp_path / "sleeve.ply"), "--robot", robot.name, "--unit", "mm"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert said.returncode == 0, said.stdout + said.stderr
    stacks.close()
    yield stacks.launched_with({"robot": robot.name})
    stacks.close()


@pytest.fixture(scope="module")
def skinned(place, stacks):
    stacks.close()  # one that runs knows no skin
    yield stacks.launched_with({})
    stacks.close()


def points_of(skin, mesh):
    """The skin's vertices by a predicted mesh, m."""
    return skin.points(np.frombuffer(mesh.vertices, np.float32).reshape(-1, 3).astype(float))


def over(skin, x, y):
    """The triangle of the skin over a place of the membrane, m."""
    middles = skin.vertices[skin.triangles].mean(axis=1)
    return int(np.linalg.norm(middles[:, :2] - [x, y], axis=1).argmin())


def place_on(skin, target, observer):
    """Where the first point of a target is on the skin, m."""
    triangle, weights = skin.places([[target.u[0], target.v[0]]])
    return weights[0] @ points_of(skin, observer.meshes[-1])[skin.triangles[triangle[0]]]


def test_a_point_of_the_skin_is_dragged_and_the_robot_brings_it_there(skinned, place, tmp_path):
    robot = load_robot("membrane")
    skin = load_skin(robot, "plate")
    observer = Observer()
    try:
        observer.wait_for(lambda: observer.driver, "the driver")
        observer.at_rest()
        with browsers() as browser, tab(browser) as one:
            one.open(address_of(skinned))
            one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")
            middle = over(skin, 0.0, 0.0)
            u, v = skin.parameters(np.array([middle]), np.array([[0.2, 0.3, 0.5]]))[0]
            one.wait(f"window.softformPicture.place('plate', {u}, {v})", "the skin")

            def is_of_a_mesh():
                """Where the place is shown, if a mesh of the last moments has it there, but for 16 bits a number."""
                there = np.array(one.place("plate", u, v))
                corners = (points_of(skin, mesh)[skin.triangles[middle]] for mesh in observer.meshes[-30:])
                return there if any(np.abs([0.2, 0.3, 0.5] @ each - there).max() < 1e-5 for each in corners) else None

            observer.wait_for(lambda: is_of_a_mesh() is not None, "the skin where the core has it")
            shown = np.array(one.place("plate", u, v))
            assert shown[2] > RAISED
            x, y = one.screen(shown)
            one.page.mouse.move(x, y)
            one.page.mouse.down()
            one.page.mouse.move(x, y - 5)
            one.page.mouse.move(x, y - 40, steps=4)
            observer.wait_for(lambda: observer.targets, "a target")

            def wanted():
                at = observer.targets[-1].position[0]
                return np.array([at.x, at.y, at.z])

            observer.wait_for(
                lambda: np.abs(np.subtract(one.screen(wanted()), (x, y - 40))).max() < 3.0, "a target under the mouse"
            )
            one.page.mouse.up()
            assert list(observer.targets[-1].output) == ["plate"] and wanted()[2] > shown[2] + 0.005
            observer.wait_for(
                lambda: np.linalg.norm(place_on(skin, observer.targets[-1], observer) - wanted()) < 0.002,
                "the skin's point where it is wanted",
            )
            assert observer.commands[-1].source == "inverse_kinematics" and max(observer.commands[-1].value) > 500.0
            folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
            one.page.screenshot(path=folder / "skin.png")
            assert one.outside == set() and one.complaints == []
    finally:
        observer.close()


def test_a_point_of_the_skin_is_reached_and_led_by_goals(skinned, place):
    robot = load_robot("membrane")
    skin = load_skin(robot, "plate")
    chosen = [over(skin, -0.05, 0.0), over(skin, 0.05, 0.04)]
    uv = skin.parameters(np.array(chosen), np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]]))
    triangle, weights = skin.places(uv)
    rest = np.einsum("mc,mcx->mx", weights, skin.vertices[skin.triangles[triangle]])
    observer = Observer()
    try:
        observer.wait_for(lambda: observer.driver, "the driver")
        observer.at_rest()
    finally:
        observer.close()
    with ShapeClient() as client:
        wanted = FeaturePoints.of(uv, rest + [[0.0, 0.0, 0.008], [0.0, 0.0, 0.012]], output=["plate"] * 2)
        plan = client.reach(features=wanted, max_time=30.0)
        # What stands 20 mm off a sheet moves sideways where that tilts: straight up is nearly in reach.
        assert plan.solve.mean_error < 1e-3 and max(plan.actuators.value) > 100.0
        path = PointPath(rest[0] + np.array([[0.0, 0.0, 0.004], [0.0, 0.0, 0.01]]), uv[0], "plate")
        assert max(client.follow(path).errors) < 2e-3
        with pytest.raises(GoalFailedError, match="no patch or frame 'hood'"):
            client.follow(PointPath(path.points, uv[0], "hood"))


def test_a_robot_without_a_surface_wears_its_skin_whose_points_are_dragged_and_reached(sleeved, tmp_path):
    robot = load_robot("three_chamber")
    skin = load_skin(robot, "sleeve")
    body = robot.body.simulator()
    pressures = robot.actuators_of(robot.actuation_max * [0.5, 0.1, 0.0])
    bent = skin.points(body.bones(equilibrium_unknowns(body, pressures[None]))[0].reshape(-1, 3))
    observer = Observer()
    try:
        observer.wait_for(lambda: observer.driver, "the driver")
        observer.at_rest()
        with browsers() as browser, tab(browser) as one:
            one.open(address_of(sleeved))
            one.wait("document.querySelector('#status').dataset.tone !== 'unknown'", "a known state")
            top = int(np.linalg.norm(skin.vertices - [0.02, 0.0, skin.vertices[:, 2].max()], axis=1).argmin())
            triangle = int((skin.triangles == top).any(axis=1).argmax())
            u, v = skin.parameters([triangle], [(skin.triangles[triangle] == top).astype(float)])[0]
            one.wait(f"window.softformPicture.place('sleeve', {u}, {v})", "the skin")

            def shown():
                return np.array(one.place("sleeve", u, v))

            def is_of_a_mesh():
                return any(np.abs(points_of(skin, mesh)[top] - shown()).max() < 1e-5 for mesh in observer.meshes[-30:])

            observer.wait_for(is_of_a_mesh, "the skin where the core has it")
            one.wait("!document.body.innerText.includes('The shape at rest was not seen')", "colours by deformation")
            height = skin.vertices[:, 2].max()
            facing = [0.02 * 0.52, -0.02 * 0.85, 0.6 * height]  # the side that the page looks at first
            near = int(np.linalg.norm(skin.vertices[skin.triangles].mean(axis=1) - facing, axis=1).argmin())
            x, y = one.screen(one.place("sleeve", *skin.parameters([near], [[0.4, 0.3, 0.3]])[0]))
            assert one.page.evaluate(f"document.elementFromPoint({x}, {y}).tagName") == "CANVAS"
            one.page.mouse.move(x, y)
            one.page.mouse.down()
            one.page.mouse.move(x + 5, y)
            one.page.mouse.move(x + 25, y, steps=4)

            observer.wait_for(lambda: observer.targets, "a target")
            one.page.mouse.up()
            target = observer.targets[-1]
            assert list(target.output) == ["sleeve"]
            picked, weights = skin.places([[target.u[0], target.v[0]]])
            assert np.linalg.norm(weights[0] @ skin.vertices[skin.triangles[picked[0]]] - facing) < 0.01
            observer.wait_for(is_of_a_mesh, "the skin on the page as it may move")
            folder = Path(os.environ.get("SOFTFORM_SCREENSHOTS", tmp_path))
            one.page.screenshot(path=folder / "sleeve.png")
            assert one.outside == set() and one.complaints == []
        observer.at_rest()
        wanted, before = bent[[top]], skin.vertices[top]
        assert np.linalg.norm(wanted - before) > 0.01
        with page_of(address_of(sleeved)) as page:
            page.operate()
            page.drag(("sleeve", u, v, wanted[0]))
            observer.wait_for(
                lambda: observer.meshes and np.linalg.norm(points_of(skin, observer.meshes[-1])[top] - wanted) < 1e-3,
                "the skin's point where it is wanted",
            )
            assert observer.commands[-1].source == "inverse_kinematics"
    finally:
        observer.close()
    with ShapeClient() as client:
        uv = np.array([[u, v]])
        plan = client.reach(features=FeaturePoints.of(uv, wanted, output=["sleeve"]), max_time=30.0)
        assert plan.solve.mean_error < 1e-4 and max(plan.actuators.value) > 500.0
        path = PointPath(before + np.array([[0.1], [0.2]]) * (wanted - before), uv[0], "sleeve")
        assert max(client.follow(path).errors) < 2e-3
