"""What the family of pneumatic boards makes of parameters, before a port is opened."""

import pytest

from softform_actuation.device import ServedActuators
from softform_core.errors import SoftformError
from softform_pneumatics.family import FAMILY


def test_a_number_of_volumes_that_is_not_that_of_the_chambers_is_reported(served: ServedActuators) -> None:
    values = {row.name: row.default for row in FAMILY.parameters} | {"chamber_volumes": [1.0, 2.0]}
    with pytest.raises(SoftformError, match=rf"has 2 numbers.*{served.actuators[0]}.*one for all"):
        FAMILY.make(served, values, lambda: False)


def test_a_volume_out_of_range_is_reported() -> None:
    (row,) = (row for row in FAMILY.parameters if row.name == "chamber_volumes")
    with pytest.raises(SoftformError, match=r"chamber_volumes is .*0\.0\]\. It must lie between 0\.05 and 50"):
        row.check([1.0, 0.0])
