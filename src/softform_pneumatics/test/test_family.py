"""What the family of pneumatic boards makes of parameters, before a port is opened."""

import dataclasses

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

from softform_actuation.device import ServedActuators
from softform_core.cli.robot import robot as command
from softform_core.errors import SoftformError
from softform_core.paths import robot_file
from softform_pneumatics.family import FAMILY


def test_a_number_of_volumes_that_is_not_that_of_the_chambers_is_reported(served: ServedActuators) -> None:
    values = {row.name: row.default for row in FAMILY.parameters} | {"chamber_volumes": [1.0, 2.0]}
    with pytest.raises(SoftformError, match=rf"has 2 numbers.*{served.actuators[0]}.*one for all"):
        FAMILY.make(served, values, lambda: False)


def test_a_volume_out_of_range_is_reported() -> None:
    (row,) = (row for row in FAMILY.parameters if row.name == "chamber_volumes")
    with pytest.raises(SoftformError, match=r"chamber_volumes is .*0\.0\]\. .* a number from 0\.05 to 50"):
        row.taken([1.0, 0.0])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"channels": [0, 1, 2, 3, 4, 5, 6, 7, 20]}, "on channel 20, but the board has 10"),
        (
            {"actuator_min": np.full(9, -100.0)},
            "channel 1 measures 0 … 100000 Pa only.*`channels` of device 'openpneu'",
        ),
        ({"actuator_max": np.full(9, 1e6)}, "works between 0 and 1e.06 Pa"),
        ({"quantities": ["pressure"] * 8 + ["displacement"]}, "commanded in Pa; .* is given a displacement"),
    ],
)
def test_what_no_board_can_serve_is_found_without_one(served: ServedActuators, changes: dict, complaint: str) -> None:
    with pytest.raises(SoftformError, match=complaint):
        FAMILY.check(dataclasses.replace(served, **changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"channels": [0, 1, 2, 3, 4, 5, 6, 7, 13]},  # modules of a binary board
        {"actuator_min": np.full(5, -100.0), "actuator_max": np.full(5, 100.0), "channels": [0, 2, 4, 6, 8]},
        {"actuator_max": np.full(9, 2e5)},
    ],
)
def test_what_one_of_the_boards_can_serve_is_right(served: ServedActuators, changes: dict) -> None:
    FAMILY.check(dataclasses.replace(served, **changes))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({"kind": "squid"}, "no device of kind 'squid'"), ({"channels": [*range(8), 16]}, "on channel 16")],
)
def test_the_command_robot_asks_the_families(tmp_path, changes: dict, complaint: str) -> None:
    content = yaml.safe_load(robot_file("membrane").read_text())
    content["devices"][0] |= changes
    path = tmp_path / "odd.yaml"
    path.write_text(yaml.safe_dump(content))
    ended = CliRunner().invoke(command, [str(path), "--has", "surface"])
    assert isinstance(ended.exception, SoftformError) and complaint in str(ended.exception)
