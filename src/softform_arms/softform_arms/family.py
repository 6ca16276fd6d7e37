"""Arms as a family of devices: what the entry point `arms` names."""

from collections.abc import Callable, Mapping
from typing import Any

from softform_actuation.device import Device, DeviceFamily, ServedActuators
from softform_actuation.ports import SerialFamily
from softform_actuation.serial_link import SerialLink
from softform_arms.arms import Arms
from softform_arms.settings import arm_settings
from softform_ros.parameters import Parameter

__all__ = ["FAMILY", "PARAMETERS", "ArmFamily"]

PARAMETERS = (
    Parameter("port", "/dev/ttyUSB0", "port of the arms' controller; the virtual rig makes a link to its own"),
    Parameter("baud_rate", 921_600, "of the controller, bit/s", 115_200, 4_000_000),
)


class ArmFamily(SerialFamily):
    """Arms of one controller, which takes joint positions."""

    parameters = PARAMETERS

    def check(self, served: ServedActuators) -> None:
        """Look at the description's settings.

        Raises:
            SoftformError: If they are wrong, or do not fit the actuators.
        """
        arm_settings(served)

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """Return the arms; nothing is opened.

        Raises:
            SoftformError: If the description's settings are wrong.
        """
        return Arms(served, SerialLink(values["port"]), values["baud_rate"])


FAMILY: DeviceFamily = ArmFamily()
