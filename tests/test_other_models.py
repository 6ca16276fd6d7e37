"""Models behind the same actions: one of another package whose body remembers, and a robot's own simulator."""

import os
import time
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest
import yaml

from softform_client.client import Mode, ShapeClient, ShapePath
from softform_core.arrays import Array
from softform_core.forward.simulated_models import SimulatedSurface
from softform_core.paths import robot_file
from softform_core.robots import load_robot
from softform_core.shapes.features import FeaturePoints
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET
from softform_core.units import MM_PER_M
from softform_interfaces.msg import MeshTopology, PredictedMesh, ServoState
from softform_ros import qos
from softform_ros.background_node import BackgroundNode
from softform_ros.conversions import unpacked_vertices

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

HIDDEN, OTHER = np.array([500.0, 2500.0, 1000.0] * 3), np.array([2000.0, 1500.0, 800.0] * 3)
SHARE = 0.2

MODULE = f'''
"""Chambers that bulge each by itself; a body that stays a share of each way behind. From outside the workspace."""
import numpy as np
from softform_core.forward.memory import Memory
from softform_core.forward.robot_models import FixedSurface
from softform_core.forward.forward_model import SplineModel

SHARE = {SHARE}


class Behind(Memory):
    def state_after(self, history, actuation, stamp):
        return actuation, actuation

    def advance(self, state, commanded, seconds=10.0):
        return state[1], commanded

    def now(self, state):
        return SHARE * state[0] + (1.0 - SHARE) * state[1]

    def command(self, state, wanted, seconds=10.0):
        return (wanted - SHARE * state[1]) / (1.0 - SHARE)


class Bulges(SplineModel):
    memory = Behind()

    def _modes(self):
        side = np.linspace(-0.16, 0.16, 30)
        x, y = (each.ravel() for each in np.meshgrid(side, side, indexing="ij"))
        modes = np.zeros((900, 9, 3))
        for place in range(9):
            off_x, off_y = 0.107 * (place % 3 - 1), 0.107 * (place // 3 - 1)
            modes[:, place, 2] = 8e-3 * np.exp(-((x - off_x) ** 2 + (y - off_y) ** 2) / 0.06**2)
        return np.stack([1e3 * x, 1e3 * y, 0.0 * x], axis=-1), modes

    def predict_control(self, actuation):
        flat, modes = self._modes()
        return flat + np.einsum("ckx,nk->ncx", modes, actuation), actuation

    def control_jacobian(self, predicted):
        return np.repeat(self._modes()[1].transpose(0, 2, 1)[None], len(predicted), axis=0)


def bulges(request):
    robot = request.robot
    model = Bulges(robot.patches, robot.patches.samples(request.points), robot.actuation_names)
    return FixedSurface(model, "bulges")
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A package outside the workspace, which the nodes find and this process does not."""
    site = tmp_path_factory.mktemp("site")
    info = site / "bulges_model-1.0.dist-info"
    info.mkdir()
    (site / "bulges_model.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bulges-model\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[softform.models]\nbulges = bulges_model:bulges\n")
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(site), before]))
    yield site
    os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def bulging(site: Path, stacks):
    stacks.launched_with({"model": "bulges"})
    yield model_of(site)
    stacks.close()


def model_of(site: Path):
    found: dict = {}
    exec((site / "bulges_model.py").read_text(), found)
    robot = load_robot("membrane")
    return found["Bulges"](robot.patches, robot.patches.samples(2000), robot.actuation_names)


def mesh(model, actuation: Array) -> Shape:
    points = model.points(actuation)
    return Shape.from_mesh(points / MM_PER_M, SHEET.triangles(len(points)))


def ahead(wanted: Array, before: Array) -> Array:
    """What to command so that the body of the package feels what is wanted."""
    return (wanted - SHARE * before) / (1.0 - SHARE)


def test_a_model_that_remembers_serves_reach_stream_follow_and_predict(bulging):
    heard: dict[str, object] = {}
    with BackgroundNode("viewer", "/softform") as node, ShapeClient() as client:
        topics = {"predicted_topology": (MeshTopology, qos.LATCHED_STATE), "predicted_mesh": (PredictedMesh, 5)}
        for topic, (kind, profile) in topics.items():
            node.create_subscription(kind, topic, lambda message, topic=topic: heard.update({topic: message}), profile)
        first = client.reach(mesh(bulging, HIDDEN), Mode.PLAN_AND_MOVE)
        assert np.array(first.actuators.value) == pytest.approx(ahead(HIDDEN, np.zeros(9)), abs=60.0)
        second = client.reach(mesh(bulging, OTHER), Mode.PLAN_AND_MOVE)
        assert np.array(second.actuators.value) == pytest.approx(
            ahead(OTHER, np.array(first.actuators.value)), abs=150.0
        )
        deadline = time.monotonic() + 10.0
        while time.monotonic() < deadline:  # the mesh is predicted at what is measured
            shape: PredictedMesh = heard.get("predicted_mesh")
            if shape is not None and len(shape.vertices):
                off = unpacked_vertices(shape.vertices) * MM_PER_M - bulging.at(SHEET.samples(1000)).points(
                    np.array(second.actuators.value)
                )
                if np.abs(off).max() < 2.0:
                    break
            time.sleep(0.1)
        else:
            raise AssertionError("the mesh is not that of the measured values")
        topology: MeshTopology = heard["predicted_topology"]
        assert shape.topology == topology.id and topology.output == ["sheet"] and not shape.scalar
        assert max(topology.triangles) + 1 == len(shape.vertices) // 3 == sum(topology.vertices)
        path = ShapePath((mesh(bulging, HIDDEN), mesh(bulging, OTHER)))
        led = np.reshape(client.follow(path).actuators.value, (2, 9))
        assert led[1] == pytest.approx(ahead(OTHER, led[0]), abs=150.0)
        states = [
            state for state, _ in zip(client.stream(repeat(mesh(bulging, HIDDEN)), 20.0), range(80), strict=False)
        ]
        assert states[-1].state == ServoState.TRACKING and states[-1].mean_error < 1e-3


@pytest.fixture(scope="module")
def coarse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The membrane with few cells, of which nothing was learned."""
    content = yaml.safe_load(robot_file("membrane").read_text()) | {"name": "coarse"}
    content["body"]["cells"] = 12
    content["surfaces"] = [{"patch": "sheet", "rows": 12, "columns": 12, "degree": 3}]
    path = tmp_path_factory.mktemp("coarse") / "coarse.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_simulator_of_a_robot_serves_reach_follow_and_stream_without_learning(coarse, own_stacks):
    robot = load_robot(str(coarse))
    model = SimulatedSurface(robot, robot.patches.samples(1000))
    own_stacks.launched_with({"robot": str(coarse), "model": "fem"})
    shapes = [mesh(model, values) for values in (HIDDEN, OTHER)]
    with ShapeClient() as client:
        result = client.reach(shapes[0], Mode.PLAN_AND_MOVE, max_time=60.0)
        assert np.array(result.actuators.value) == pytest.approx(HIDDEN, abs=40.0)
        path = client.follow(ShapePath(tuple(shapes)))
        assert max(path.errors) < 2e-4
        assert np.reshape(path.actuators.value, (2, 9))[1] == pytest.approx(OTHER, abs=60.0)
        states = [state for state, _ in zip(client.stream(repeat(shapes[0]), 10.0), range(100), strict=False)]
        assert states[-1].state == ServoState.TRACKING and states[-1].mean_error < 1e-3


CABLES = """
from typing import Literal
from softform_core.bodies.freeform.description import FreeformBody


class CableArm(FreeformBody):
    kind: Literal["cable_arm"]
"""


@pytest.fixture(scope="module")
def cable_arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One section of the example with cables, as the body of a package outside the workspace."""
    place = tmp_path_factory.mktemp("cables")
    info = place / "site" / "cables-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "site" / "cables.py").write_text(CABLES)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cables\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[softform.bodies]\ncable_arm = cables:CableArm\n")
    realities = place / "config" / "realities" / "cable_arm"
    realities.mkdir(parents=True)
    (realities / "default.yaml").write_text(yaml.safe_dump({"name": "default", "title": "As simulated"}))
    content = yaml.safe_load((Path(__file__).parents[1] / "docs" / "examples" / "cable_arm.yaml").read_text())
    body = content["body"] | {"kind": "cable_arm", "mesh_size": 0.02}
    body["shape"][0] |= {"end": [0.0, 0.0, 0.1], "end_radius": 0.03}
    body["rigid"], body["loads"] = body["rigid"][:1], body["loads"][:3]
    content["devices"][0]["channels"] = [1, 2, 3]
    content["devices"][0]["settings"]["current_limit"] = 0.4
    content["surfaces"] = [{"patch": "tube", "rows": 10, "columns": 8, "degree": 3}]
    (place / "cable_arm.yaml").write_text(yaml.safe_dump(content | {"body": body}))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(place / "site")
        patch.setenv("PYTHONPATH", os.pathsep.join([str(place / "site"), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("SOFTFORM_CONFIG_PATH", str(place))
        yield place / "cable_arm.yaml"


def test_an_arm_with_cables_is_served_by_its_finite_elements(cable_arm, own_stacks):
    robot = load_robot(str(cable_arm))
    model = SimulatedSurface(robot, robot.patches.samples(6000))  # fine: chords of a tube miss it
    own_stacks.launched_with({"robot": str(cable_arm), "model": "fem"})
    pulls = np.array([[0.0015, 0.0004, 0.0], [0.0006, 0.0014, 0.0003]])
    shapes = [Shape.from_mesh(model.points(pull) / MM_PER_M, robot.patches.triangles(len(model.uv))) for pull in pulls]
    tip = model.at(robot.point_parameters("tip")).points(pulls[0]).mean(axis=0) / MM_PER_M
    with ShapeClient() as client:
        result = client.reach(shapes[0], Mode.PLAN_AND_MOVE, max_time=60.0)
        assert result.solve.mean_error < 1e-4
        assert np.array(result.actuators.value) == pytest.approx(pulls[0], abs=2e-4)
        place = client.reach(features=FeaturePoints.of([[0.0, 0.0]], tip[None], output=["tip"]), max_time=60.0)
        assert place.solve.mean_error < 1e-4
        assert max(client.follow(ShapePath(tuple(shapes))).errors) < 2e-4
        states = [state for state, _ in zip(client.stream(repeat(shapes[0]), 10.0), range(150), strict=False)]
        assert states[-1].state == ServoState.TRACKING and states[-1].mean_error < 1e-3
