"""Pneumatic boards as a family of devices: what the entry point `pneumatic_board` names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from softform_actuation.device import Device, DeviceError, DeviceFamily, ServedActuators
from softform_actuation.ports import SerialFamily
from softform_actuation.state_files import state_file
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.plant import load_plant
from softform_pneumatics.balance import Air
from softform_pneumatics.boards.detection import AUTO, BOARDS, make_board
from softform_pneumatics.offsets import OffsetStore
from softform_pneumatics.pneumatic_device import PneumaticDevice
from softform_pneumatics.wiring import Wiring
from softform_ros.parameters import Parameter

PARAMETERS = (
    Parameter("port", "/dev/ttyUSB0", "port of the board; the virtual rig makes a link to its own"),
    Parameter("board", AUTO, "what is on the port (see docs/boards.md); `auto` finds out", choices=BOARDS),
    Parameter("plant", "auto", "`auto`: leaks and blockages by `config/plant.yaml` on an OpenPneu; `none`: not at all",
        choices=("auto", "none")),
    Parameter("chamber_volumes", [1.0],
        "volume of each chamber with its tube, in those of the identified plant (see `identify-plant`); one for all",
        0.05, 50.0),
    Parameter("response_timeout", 1.5, "time over which the balance of air is taken, s", 0.5, 10.0),
    Parameter("offset_limit", 500.0, "a sensor further off at rest than this is rejected, Pa", 0.0, 5000.0),
)  # fmt: skip


class PneumaticFamily(SerialFamily):
    """Boards that regulate pressures by themselves."""

    parameters = PARAMETERS

    def check(self, served: ServedActuators) -> None:
        """As `DeviceFamily.check`: whether any board has the channels in the range; which it is, is not known yet."""
        if others := set(served.quantities) - {"pressure"}:
            raise DeviceError(
                f"Pneumatic boards are commanded in Pa; '{served.device}' is given a {others.pop()}.",
                "Give quantity: pressure.",
            )
        complaints = []
        for kind in BOARDS[1:]:
            board = make_board(kind, "", served.channels, _vent_threshold(served))
            try:
                Wiring(served, board).require_ranges()
            except DeviceError as error:
                complaints.append(error)
        if len(complaints) == len(BOARDS) - 1:
            raise complaints[0]

    def make(self, served: ServedActuators, values: Mapping[str, Any], interrupted: Callable[[], bool]) -> Device:
        """As `DeviceFamily.make`; with `board: auto` the port is opened here, to find out what is on it."""
        limit = values["offset_limit"]
        volumes = _volumes(values["chamber_volumes"], served)
        air = None if values["plant"] == "none" else Air(load_plant(), volumes)
        highest = float((served.actuator_max + served.tolerances.beyond_range).max()) + limit
        threshold = _vent_threshold(served)
        board = make_board(values["board"], values["port"], served.channels, threshold, highest, interrupted)
        name = self.adapter(values)
        offsets = OffsetStore(state_file(name, f"{served.robot}.offsets"), served, name, limit)
        return PneumaticDevice(board, served, offsets, air, limit, values["response_timeout"])


def _vent_threshold(served: ServedActuators) -> float:
    """How far (Pa) above its target a channel is vented: a board has one for all, the smallest."""
    return float(served.tolerances.vent_threshold.min())


def _volumes(given: Sequence[float], served: ServedActuators) -> Array:
    """Volume of each chamber, (k,)."""
    if len(given) not in (1, len(served.actuators)):
        raise SoftformError(
            f"Parameter chamber_volumes has {len(given)} numbers; this device serves {', '.join(served.actuators)}.",
            "Give one for each, in this order, or one for all.",
        )
    return np.broadcast_to(np.asarray(given, dtype=np.float64), len(served.actuators)).copy()


FAMILY: DeviceFamily = PneumaticFamily()
