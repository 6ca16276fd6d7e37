"""A body that the rig has never heard of is live on it: a piston against a spring."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from softform_core.geometry.rigid import RigidTransform
from softform_core.robots import Robot, load_robot
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description
from softform_core.simulation.hessian import BlockHessian
from softform_rig.reality import MotionCaptureDescription, Reality
from softform_rig.rig_settings import RigSettings
from softform_rig.virtual_rig import VirtualRig


class RealPiston(Description):
    """A spring that is softer than the simulator's."""

    softening: float = 1.0


class PistonProblem:
    """Pi(x; p) = k x²/2 + c x⁴/4 - p A x: the stroke x of each chamber's piston moves a tip along one axis."""

    batch = 8
    faces = np.zeros((0, 3), dtype=np.int32)
    frames = {"tip": 0}
    is_slack = False
    largest_step, rounding = 0.1, 1e-16
    rest, unloaded = np.zeros(3), np.zeros(3)

    def __init__(self, softening: float) -> None:
        self.stiffness, self.hardening, self.area = 1000.0 / softening, 1e6, 1e-3

    def tolerance(self, actuators: np.ndarray) -> np.ndarray:
        return np.full(len(actuators), 1e-10)

    def start(self, actuators: np.ndarray) -> np.ndarray:
        return np.zeros((len(actuators), 3))

    def energy(self, unknowns: np.ndarray, actuators: np.ndarray) -> np.ndarray:
        stored = 0.5 * self.stiffness * unknowns**2 + 0.25 * self.hardening * unknowns**4
        return (stored - self.area * actuators * unknowns).sum(axis=1)

    def derivatives(self, unknowns: np.ndarray, actuators: np.ndarray) -> tuple[np.ndarray, BlockHessian]:
        gradient = self.stiffness * unknowns + self.hardening * unknowns**3 - self.area * actuators
        return gradient, BlockHessian((self.stiffness + 3.0 * self.hardening * unknowns**2)[:, :, None, None])

    def load_derivative(self, unknowns: np.ndarray, actuators: np.ndarray) -> np.ndarray:
        return np.broadcast_to(-self.area * np.eye(3), (len(unknowns), 3, 3))

    def has_run_away(self, unknowns: np.ndarray) -> np.ndarray:
        return np.abs(unknowns).max(axis=1) > 10.0

    def points(self, unknowns: np.ndarray) -> np.ndarray:
        return unknowns[:, None]

    def moved_points(self, unknowns: np.ndarray, moves: np.ndarray) -> np.ndarray:
        return moves[:, None]


class PistonBody(Body):
    kind: Literal["piston"] = "piston"

    @property
    def inputs(self) -> list[str]:
        return ["x", "y", "z"]

    @property
    def size(self) -> float:
        return 0.1

    @property
    def frames(self) -> dict[str, int]:
        return {"tip": 3}

    def outlines(self) -> list[Outline]:
        return [Outline("from the end", "ellipse", 0.0, 0.0, 0.02, 0.02)] * 3

    def simulator(self) -> PistonProblem:
        return PistonProblem(1.0)

    def sampled(self) -> Any:
        raise NotImplementedError

    @classmethod
    def reality_type(cls) -> type[Description]:
        return RealPiston

    def real_simulator(self, reality: Any) -> PistonProblem:
        return PistonProblem(reality.softening)


@pytest.fixture
def robot() -> Robot:
    return load_robot("three_chamber", "tip").model_copy(update={"body": PistonBody()})


def test_a_body_of_another_kind_moves_under_the_board_and_is_captured(robot: Robot, tmp_path: Path) -> None:
    cameras = MotionCaptureDescription(noise=0.0, missing=0.0)
    reality = Reality(name="soft", title="", body=RealPiston(softening=2.0), motion_capture=cameras)
    frames: list[np.ndarray] = []
    settings = RigSettings(tmp_path / "openpneu", tmp_path / "scans", [])
    rig = VirtualRig(robot, reality, settings, on_markers=lambda *frame: frames.append(frame[0]))
    assert rig.scanning is None and rig.cameras.names == ["tip", *robot.base_markers]
    channel = robot.devices[0].channels[2]
    for kilopascal in (10.0, 10.05, 40.0):
        rig.terminals[0].firmware.channels.pressure[channel] = kilopascal
        rig.capture_markers()
    assert rig.body.solves == 2, "the second look is to first order about the first"
    in_robot = RigidTransform.from_pose(cameras.pose).apply
    for frame, pascal in zip(frames, (10e3, 10.05e3, 40e3), strict=True):
        roots = np.roots([1e6, 0.0, 500.0, -1e-3 * pascal])
        stroke = roots[np.abs(roots.imag) < 1e-9].real[0]
        np.testing.assert_allclose(in_robot(frame)[0], [0.0, 0.0, stroke], atol=1e-7)
    assert rig.faults == []
