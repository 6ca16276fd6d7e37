"""Every shipped robot is predicted, reached, followed and streamed with its own simulation as model."""

import pytest

from softform_core.errors import SoftformError
from softform_core.paths import described_names
from softform_core.robots import load_robot
from softform_studies.fem.bench import Led, models_by_simulation

QUICK = {"compressible", "planar_fingers", "tendon_robot", "tendon_rod", "three_chamber"}


@pytest.mark.timeout(1200)  # of the manipulator, where the machine has other work: a few minutes
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in described_names("robots")],
)
def test_a_robot_is_led_by_its_simulation(name):
    if name == "mesh_finger":
        pytest.importorskip("gmsh")
    robot = load_robot(name)
    led = Led(robot)
    (_, reach_mm), (_, follow_mm), (ticks, stream_mm) = led.reach(), led.follow(), led.stream()
    assert led.deformation_mm > 4.0 and len(ticks) > 10
    assert reach_mm < 0.25 and follow_mm < 0.1 and stream_mm < 0.5, "the path is one that it can keep to"


def test_what_cannot_be_led_is_told(tmp_path):
    path = tmp_path / "nothing.yaml"
    path.write_text("name: nothing\n", encoding="utf-8")
    figures = models_by_simulation([str(path)], lambda line: None)
    assert figures["led"] == 0 and "does not describe a robot" in figures["robots"][str(path)]["told"]
    with pytest.raises(SoftformError):
        load_robot(str(path))
