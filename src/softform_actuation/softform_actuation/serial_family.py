"""What families of devices on serial ports have in common."""

from collections.abc import Mapping
from typing import Any

from softform_actuation.device import ServedActuators
from softform_actuation.ports import names_of_port


class SerialFamily:
    """A family of devices that have a parameter `port` each."""

    def adapters(self, values: Mapping[str, Any]) -> list[str]:
        """Names of the device's port, as `DeviceFamily.adapters`."""
        return names_of_port(values["port"])

    def check(self, served: ServedActuators) -> None:
        """As `DeviceFamily.check`; by default nothing is checked."""

    def adapter(self, values: Mapping[str, Any]) -> str:
        """The one by which what is known of the device is kept."""
        return self.adapters(values)[-1]
