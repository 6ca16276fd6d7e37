"""A frame decoded as PROTOCOL.md says, apart from the code that makes it."""

import struct
from typing import NamedTuple

import numpy as np


class Decoded(NamedTuple):
    kind: int
    level: int
    flags: int
    gone: int
    robot: int
    outputs: int
    seq: int
    stamp: float
    topology: int
    points: np.ndarray | None
    scalar: np.ndarray | None
    triangles: np.ndarray | None
    uv: np.ndarray | None
    output: np.ndarray | None
    cells: int


def decoded(frame: bytes) -> Decoded:
    assert frame[:4] == b"SFC1"
    kind, level, flags, gone = frame[4:8]
    robot, outputs, seq, stamp, n, t, topology, scalar_min, scalar_step, cells = struct.unpack(
        "<HHIdIIIffI", frame[8:48]
    )
    low, step = np.frombuffer(frame, "<f4", 3, 48), np.frombuffer(frame, "<f4", 3, 60)
    assert cells == 0 or kind == 1
    at = 72

    def take(kind_of: str, count: int) -> np.ndarray:
        nonlocal at
        values = np.frombuffer(frame, kind_of, count, at)
        at += values.nbytes
        return values

    points = scalar = triangles = uv = output = None
    if kind == 1:
        triangles, uv, output = take("<u4", 3 * t).reshape(-1, 3), take("<f4", 2 * n).reshape(-1, 2), take("u1", n)
    elif kind != 6:
        raw = take("<u2" if level else "<f4", 3 * n).reshape(-1, 3)
        points = low + step * raw if level else raw
        if flags & 2:
            scalar = scalar_min + scalar_step * take("u1", n) if level else take("<f4", n)
        if t:
            triangles = take("<u4", 3 * t).reshape(-1, 3)
    assert at == len(frame)
    return Decoded(
        kind, level, flags, gone, robot, outputs, seq, stamp, topology, points, scalar, triangles, uv, output, cells
    )
