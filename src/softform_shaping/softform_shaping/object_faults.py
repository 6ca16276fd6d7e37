"""What may happen to an object between two grippers, as a camera sees it: for rigs that let it go wrong."""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_shaping.camera import Solid, box_solid

__all__ = ["CAMERA_LOST", "CLEAR", "FAULTS", "checked_fault", "spoilt"]

CAMERA_LOST, CLEAR = "camera_lost", "clear"
_HANGS = 0.9
"""rad by which an object that hangs from one gripper has turned."""
_GAP = 0.43, 0.57
"""Of its length, between which a torn one is gone."""
_THIN = 0.5
_BESIDE = 0.03
"""m between the object and another one."""


def _opened(solid: Solid) -> list[Solid]:
    """Out of the left gripper, down from the right one."""
    end = np.array([*solid.vertices.mean(axis=0)[:2], solid.vertices[:, 2].max()])
    return [solid._replace(vertices=end + Rotation.from_rotvec([0.0, _HANGS, 0.0]).apply(solid.vertices - end))]


def _torn(solid: Solid) -> list[Solid]:
    low, high = solid.vertices[:, 2].min(), solid.vertices[:, 2].max()
    share = (solid.vertices[solid.faces, 2] - low) / (high - low)
    kept = (share < _GAP[0]).all(axis=1) | (share > _GAP[1]).all(axis=1)
    return [solid._replace(faces=solid.faces[kept])]


def _beside_another(solid: Solid) -> list[Solid]:
    """Another of its colour above it, half as long."""
    low, high = solid.vertices.min(axis=0), solid.vertices.max(axis=0)
    length = high[2] - low[2]
    begin = np.array([high[0] + _BESIDE, low[1], low[2] + 0.25 * length])
    end = np.array([high[0] + _BESIDE + 0.5 * length, high[1], high[2] - 0.25 * length])
    return [solid, box_solid(begin, end, solid.colour)]


def _thinner(solid: Solid) -> list[Solid]:
    middle = np.array([solid.vertices[:, 0].mean(), 0.0, 0.0])
    return [solid._replace(vertices=middle + (solid.vertices - middle) * [_THIN, 1.0, 1.0])]


_SPOIL: Mapping[str, Callable[[Solid], list[Solid]]] = {
    "gripper_opened": _opened,
    "object_torn": _torn,
    "another_object": _beside_another,
    "wrong_object": _thinner,
}

FAULTS = (*_SPOIL, CAMERA_LOST)
"""What may be asked for."""


def checked_fault(text: str) -> str:
    """The fault that is asked for; empty for `clear`.

    Raises:
        SoftformError: If there is no such fault.
    """
    if text not in (*FAULTS, CLEAR):
        raise SoftformError(f"There is no fault '{text}' of an object.", f"There are: {', '.join(FAULTS)}; {CLEAR}.")
    return "" if text == CLEAR else text


def spoilt(fault: str, solids: list[Solid]) -> list[Solid]:
    """What there is to see (the object first) under one of `FAULTS`; without one, and of a lost camera, the same."""
    if fault not in _SPOIL:
        return solids
    first, *others = solids
    return [*_SPOIL[fault](first), *others]
