"""A body of a package outside the workspace is found and used."""

import subprocess
import sys
from pathlib import Path

import yaml

MODULE = '''
"""A piston whose rod moves a tip along z; from outside the workspace."""
from typing import Any, Literal
import numpy as np
from softform_core.robots.body import Body, Outline
from softform_core.robots.description import Description
from softform_core.simulation.sampled_body import Solved

class Stroke:
    """The stroke in proportion to the pressure, as data sets use it."""

    block, constants = 16, {}

    def __init__(self, body: "PistonBody") -> None:
        self._body = body

    def output_shapes(self, degrees_of_freedom: int) -> dict[str, tuple[int, ...]]:
        return {"tip": (3,), "jacobian": (3, degrees_of_freedom)}

    def solve(self, actuators: np.ndarray, by_actuation: np.ndarray) -> Solved:
        along = np.array([0.0, 0.0, self._body.stroke / 1e5])
        outputs = {"tip": actuators * along, "jacobian": along[None, :, None] * by_actuation}
        return Solved(outputs, np.ones(len(actuators), dtype=np.int64), [""] * len(actuators))


class PistonBody(Body):
    kind: Literal["piston"]
    stroke: float

    @property
    def inputs(self) -> list[str]:
        return ["p"]

    @property
    def size(self) -> float:
        return self.stroke

    @property
    def frames(self) -> dict[str, int]:
        return {"tip": 3}

    @property
    def patches(self) -> dict[str, bool]:
        return {"hose": True}

    def outlines(self) -> list[Outline]:
        return [Outline("from the end", "ellipse", 0.0, 0.0, 0.02, 0.02)]

    def simulator(self) -> Any:
        return lambda pressure: self.stroke * pressure / 1e5

    def sampled(self) -> Any:
        return Stroke(self)

    @classmethod
    def reality_type(cls) -> type[Description]:
        return Description
'''

USE = """
import sys
from pathlib import Path
from softform_core.robots import load_robot
from softform_core.robots.description import SurfaceDescription
from softform_core.plugins import plugin_kinds
from softform_core.surface.patch_set import PatchSet

robot = load_robot(sys.argv[1], "tip")
kinds = "bellows cable_arm freeform imported layered membrane mesh piston rod solid tendon_rod two_arms".split()
assert plugin_kinds("softform.bodies") == kinds
from softform_core.simulation.generate import generate
from softform_core.simulation.sampling import grid
store = generate(robot, grid(robot, 3), Path(sys.argv[2]), jobs=1, progress=False)
actuation, tips, jacobians = store.converged()
assert len(actuation) == 3 and abs(tips[:, 2] - 1e-6 * actuation[:, 0]).max() < 1e-12
assert abs(jacobians[:, 2, 0] - 1e-6).max() < 1e-15
hose = SurfaceDescription(patch="hose", rows=12, columns=9, degree=3)
assert robot.model_copy(update={"surfaces": [hose]}).patches == PatchSet.of(12, 9, 3, periodic=True)
print(robot.body.kind, robot.actuators, robot.degrees_of_freedom, robot.body.simulator()(5e4))
"""


def test_a_body_of_another_package_is_found_and_used(tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "piston_body-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "piston_body.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: piston-body\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[softform.bodies]\npiston = piston_body:PistonBody\n")
    robot = {
        "name": "piston",
        "title": "A piston",
        "source": "test",
        "body": {"kind": "piston", "stroke": 0.1},
        "actuators": {"minimum": 0.0, "maximum": 1e5, "slew_rate": 1e5},
        "devices": [{"name": "board", "channels": [0]}],
        "frames": {"tip": {"segments": 3, "forward_kinematics": [4], "jacobian": [4]}},
    }
    path = tmp_path / "piston.yaml"
    path.write_text(yaml.safe_dump(robot))
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n{USE}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "piston.zarr")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["piston", "['p']", "1", "0.05"]
