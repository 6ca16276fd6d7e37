"""Where the rig's devices appear and how they behave."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from softform_rig.fault_kinds import Fault

FirmwareKind = Literal["regulated", "shipped"]
BoardName = Literal["openpneu_a", "openpneu_b", "binary"]

CHANNELS = 10
"""Of each board."""


@dataclass(frozen=True)
class RigSettings:
    """Where the rig's devices appear and how they behave.

    Attributes:
        port_link: symbolic link to the board's terminal; of several `port_link`_DEVICE, and so with `wire_log`.
        scan_folder: folder of the scanner's exports.
        registration: pose of the scanner in the robot's frame: x, y, z (m), qx, qy, qz, qw.
        firmware: Kind of firmware; see `Firmware`.
        board: Kind of board; see `make_board`.
        seed: Seed of the noise of sensors and scanner.
        scan_period: s between scans while the shape changes.
        keep_scans: exports to keep.
        mocap_rate: frames of motion capture a second; 0 for none.
        faults: Faults that are injected by schedule; their times count from `start`.
        wire_log: where what arrives on the board's wire is logged; None for nowhere.
    """

    port_link: Path
    scan_folder: Path
    registration: list[float]
    firmware: FirmwareKind = "regulated"
    board: BoardName = "openpneu_a"
    seed: int = 0
    scan_period: float = 1.0
    keep_scans: int = 100
    mocap_rate: float = 0.0
    faults: Sequence[Fault] = ()
    wire_log: Path | None = None
