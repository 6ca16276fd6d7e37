"""What clouds say of where the camera stands, of the skin, and of the material, all of them together.

A camera that stands lower, an object that hangs, and one that is softer on one side look alike in one picture. In more
of them they do not: the camera stays where it is, what is softer bends otherwise as the grippers move, and at these the
object is where they are.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial.transform import Rotation

from softform_core.arrays import Array
from softform_core.geometry.rigid import RigidTransform

__all__ = ["Belief", "Doubts", "Seen"]


@dataclass(frozen=True)
class Doubts:
    """How much is not known, chosen here.

    Attributes:
        depth_noise: Standard deviation of the cloud along its normals, with what the model does wrong, m.
        independent: Points of a cloud that err by themselves: the model's errors reach over many.
        camera: Standard deviations of the camera's calibration, m and rad.
        skin: Of how far the skin lies outside of the flat sides of the mesh, m.
    """

    depth_noise: float = 0.002
    independent: int = 25
    camera: tuple[float, float] = (0.004, 0.006)
    skin: float = 0.001


class Seen(NamedTuple):
    """Points of a cloud, and what of the visual mesh is nearest to each.

    Attributes:
        points: (N, 3) m, by the camera as it was believed to stand.
        normals: (N, 3) of the mesh there.
        gaps: (N,) m, by which the simulated mesh lies outwards of each.
        rows: (N, 3V) how the gaps change as nodes move, by node and axis.
    """

    points: Array
    normals: Array
    gaps: Array
    rows: csr_matrix


class Belief:
    """Gaussian belief of camera, skin and theta together: an extended Kalman filter in the form of information.

    Args:
        doubts: Of the prior and of clouds.
        spreads: (k,) prior standard deviations of theta.
        middle: (3,) m, about which the camera's turn is counted.

    Attributes:
        camera: Takes a cloud to where it should be.
        skin: m, how far it lies outside of the mesh.
        theta: (k,) of the material.
    """

    def __init__(self, doubts: Doubts, spreads: Array, middle: Array) -> None:
        self._doubts, self._middle = doubts, middle
        self.camera, self.skin, self.theta = RigidTransform(), 0.0, np.zeros(len(spreads))
        self._information = np.diag(1.0 / np.concatenate([np.repeat(doubts.camera, 3), [doubts.skin], spreads]) ** 2)
        self._before, self._change = self._information, np.zeros(len(self._information))

    def update(self, seen: Seen, by_theta: Array, again: bool = False) -> tuple[Array, Array]:
        """Take in a cloud.

        Args:
            seen: It; its gaps are to the shape as simulated with theta.
            by_theta: (V, 3, k), how nodes move with theta.
            again: Whether it is the last one, seen from the shape of the theta that this said (iterated filter).

        Returns:
            (k,) the change of theta; and (N,) m, what is left of the gaps, to the skin.
        """
        by_material = seen.rows @ by_theta.reshape(3 * len(by_theta), len(self.theta))
        turned = np.cross(seen.points - self._middle, seen.normals)
        rows = np.column_stack([seen.normals, turned, -np.ones(len(turned)), -by_material])
        gaps = seen.gaps + self.skin
        weights = self._weights(gaps)
        if not again:
            self._before, self._change = self._information, np.zeros(len(self._information))
        self._information = self._before + (rows * weights[:, None]).T @ rows
        change = np.linalg.solve(self._information, rows.T @ (weights * gaps) - self._before @ self._change)
        self._change = self._change + change
        turn = Rotation.from_rotvec(change[3:6]).as_matrix()
        self.camera = RigidTransform(turn, self._middle + change[:3] - turn @ self._middle).after(self.camera)
        self.skin, self.theta = self.skin + float(change[6]), self.theta + change[7:]
        return np.asarray(change[7:]), np.asarray(gaps - rows @ change)

    def _weights(self, gaps: Array) -> Array:
        """Information (N,) 1/m^2 of each gap; less of what lies far off, as what belongs to something else does."""
        variance = self._doubts.depth_noise**2
        share = min(1.0, self._doubts.independent / max(len(gaps), 1))
        return np.asarray(share / variance / (1.0 + gaps**2 / (9.0 * variance)))
