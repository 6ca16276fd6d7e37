"""What faults do to a frame of motion capture."""

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_rig.fault_kinds import Fault
from softform_rig.fault_schedule import FaultSchedule


def check_marker_names(fault: Fault, names: list[str]) -> None:
    """Reject a fault that names a marker which is not there.

    Raises:
        SoftformError: Naming it.
    """
    for value in fault.values:
        if fault.kind.device == "motion capture" and isinstance(value, str) and value and value not in names:
            raise SoftformError(f"There is no marker '{value}'.", f"There are: {', '.join(names)}.")


def faulty_markers(positions: Array, names: list[str], schedule: FaultSchedule) -> Array | None:
    """A frame (M, 3) m as the faults that are on have it, or None if none comes; the schedule hears which show."""
    for fault in schedule.on("mocap_silent"):
        schedule.shows(fault)
        return None
    found = positions.copy()
    for fault in schedule.on("mocap_swap"):
        first = _index(fault.values[0], names, 0)
        second = _index(fault.values[1], names, first + 1)
        found[[first, second]] = found[[second, first]]
        schedule.shows(fault)
    for fault in schedule.on("mocap_teleport"):
        found[_index(fault.values[1], names, 0), 0] += fault.number()
        schedule.shows(fault)
    for fault in schedule.on("mocap_occlude"):
        found[: round(fault.number() * len(names))] = np.nan
        schedule.shows(fault)
    return found


def _index(name: object, names: list[str], default: int) -> int:
    """Where a marker stands, or a marker of the rig's choice where none is named or there is none of that name."""
    return names.index(name) if isinstance(name, str) and name in names else default % len(names)
