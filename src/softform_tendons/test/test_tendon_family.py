"""What the family of tendon motors makes of a description, before a port is opened."""

import dataclasses

import pytest

from softform_actuation.assembly import served_by_devices
from softform_core.errors import SoftformError
from softform_core.robots import load_robot
from softform_tendons.family import FAMILY

SERVED = served_by_devices(load_robot("tendon_rod"))[0]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"settings": {}}, "drum_radius: Field required"),
        ({"settings": dict(SERVED.settings) | {"drum_radius": 0.001}}, "more than one turn of the drum"),
        ({"quantities": ["displacement"] * 3 + ["pressure"]}, "commanded in m of pull; .* is given a pressure"),
    ],
)
def test_wrong_settings_are_found_before_a_port_is_opened(changes: dict, complaint: str) -> None:
    FAMILY.check(SERVED)
    with pytest.raises(SoftformError, match=complaint):
        FAMILY.check(dataclasses.replace(SERVED, **changes))
