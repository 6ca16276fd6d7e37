"""Dead-men as a family of devices: what the entry point `dead_man` names."""

from collections.abc import Callable, Mapping
from typing import Any

from softform_actuation.device import Device, DeviceFamily, ServedActuators
from softform_actuation.ports import SerialFamily
from softform_actuation.serial_link import SerialLink
from softform_core.errors import SoftformError
from softform_deadman.dead_man import DeadMan
from softform_ros.parameters import Parameter

PARAMETERS = (Parameter("port", "/dev/ttyACM0", "port of the dead-man; the virtual rig makes a link to its own"),)


class DeadManFamily(SerialFamily):
    """Relays in the supply of what other devices serve."""

    parameters = PARAMETERS

    def check(self, served: ServedActuators) -> None:
        """As `DeviceFamily.check`: it serves no actuator, of a robot that is safe without power.

        Raises:
            SoftformError: If not.
        """
        if served.actuators or served.settings:
            raise SoftformError(
                f"The dead-man '{served.device}' is given actuators or settings.",
                "Write actuators: [] and channels: [], and no settings.",
            )
        if "pressure" not in served.robot_quantities:
            raise SoftformError(
                f"'{served.robot}' is moved by motors, which cannot be found, and do not let go, without their supply.",
                "Leave the dead-man out: the motors' own bus watchdog stops them.",
            )

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """As `DeviceFamily.make`; nothing is opened."""
        return DeadMan(SerialLink(values["port"]))


FAMILY: DeviceFamily = DeadManFamily()
