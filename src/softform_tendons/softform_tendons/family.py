"""Buses of tendon motors as a family of devices: what the entry point `dynamixel` names."""

from collections.abc import Callable, Mapping
from typing import Any

from softform_actuation.device import Device, DeviceFamily, ServedActuators
from softform_actuation.ports import SerialFamily
from softform_actuation.serial_link import SerialLink
from softform_actuation.state_files import state_file
from softform_ros.parameters import Parameter
from softform_tendons.settings import tendon_settings
from softform_tendons.tendon_bus import TendonBus

PARAMETERS = (
    Parameter("port", "/dev/ttyUSB0", "port of the adapter; the virtual rig makes a link to its own"),
    Parameter("baud_rate", 1_000_000, "of the motors, bit/s; as they come they have 57600", 9600, 4_500_000),
)


class TendonFamily(SerialFamily):
    """Dynamixel motors that pull tendons."""

    parameters = PARAMETERS
    calibration_moves = True

    def check(self, served: ServedActuators) -> None:
        """Look at the description's settings.

        Raises:
            SoftformError: If they are wrong, or do not fit the actuators.
        """
        tendon_settings(served)

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """Return the bus; nothing is opened.

        Raises:
            SoftformError: If the description's settings are wrong, or the calibrated homes cannot be read.
        """
        homes = state_file(self.adapter(values), f"{served.robot}.{served.device}.homes")
        return TendonBus(served, SerialLink(values["port"]), values["baud_rate"], homes)


FAMILY: DeviceFamily = TendonFamily()
