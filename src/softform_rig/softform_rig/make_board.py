"""The emulated board that a name stands for."""

from typing import Literal

from softform_core.plant import Plant
from softform_rig.binary_bus import BinaryBus
from softform_rig.emulated_board import EmulatedBoard, Sensors
from softform_rig.firmware import Firmware, FirmwareKind
from softform_rig.protocol_b import ProtocolBBoard

BoardName = Literal["openpneu_a", "openpneu_b", "binary"]


def make_board(name: BoardName, plant: Plant, sensors: Sensors, firmware: FirmwareKind = "regulated") -> EmulatedBoard:
    """Build a board by its name in docs/boards.md; `firmware` is of `openpneu_a`, see `Firmware`."""
    if name == "openpneu_a":
        return Firmware(plant, sensors, firmware)
    return ProtocolBBoard(plant, sensors) if name == "openpneu_b" else BinaryBus(plant, sensors)
