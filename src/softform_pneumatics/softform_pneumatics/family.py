"""Pneumatic boards as a family of devices: what the entry point `pneumatic_board` names."""

from collections.abc import Callable, Mapping
from typing import Any

from softform_actuation.device import Device, DeviceFamily, ServedActuators
from softform_actuation.serial_family import SerialFamily
from softform_actuation.state_files import state_file
from softform_core.plant import load_plant
from softform_pneumatics.balance import Air
from softform_pneumatics.boards.detection import BoardSettings, make_board
from softform_pneumatics.offsets import OffsetStore
from softform_pneumatics.parameters import PARAMETERS
from softform_pneumatics.pneumatic_device import PneumaticDevice, PneumaticSettings


class PneumaticFamily(SerialFamily):
    """Boards that regulate pressures by themselves."""

    parameters = PARAMETERS

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """Return the board; with `board: auto` its port is opened here, to find out what is on it.

        Raises:
            SoftformError: If the board cannot be found out, or the identified plant cannot be read.
        """
        limit, tolerances = values["offset_limit"], served.tolerances
        air = None if values["plant"] == "none" else Air(load_plant(), values["chamber_volume"])
        highest = float(served.actuator_max.max()) + tolerances.beyond_range + limit
        settings = BoardSettings(served.channels, tolerances.vent_threshold, highest)
        board = make_board(values["board"], values["port"], settings, interrupted)
        name = self.adapter(values)
        offsets = OffsetStore(state_file(name, f"{served.robot}.offsets"), served, name, limit)
        return PneumaticDevice(board, served, PneumaticSettings(limit, values["response_timeout"]), offsets, air)


FAMILY: DeviceFamily = PneumaticFamily()
