"""Feature points: places of the robot's surface, and where each is wanted (paper 002, Sec. II-B)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.robots import CENTRE_LINE, Robot
from softform_core.shapes.skin_store import load_skin, skin_names
from softform_core.surface.anchors import Anchors
from softform_core.surface.patch_set import on_patches

MAX_FEATURES = 1000
"""More points than this are a shape: give a cloud or a mesh."""


@dataclass(frozen=True)
class FeaturePoints:
    """Sparse targets with correspondence; made by `of`, which checks them.

    Attributes:
        uv: (Q, 2) surface parameters, see `surface.patch_set`.
        positions: (M, 3) m, where each point is wanted.
        weights: (M,) of each squared distance.
        anchors: The M points on the surface at the Q parameters; None if they are those themselves.
        output: Patch, frame, centre line or skin of each point, whose uv are then its own; empty: all lie on the
            surface of `uv`.
    """

    uv: Array
    positions: Array
    weights: Array
    anchors: Anchors | None = None
    output: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, uv: ArrayLike, positions: ArrayLike, weights: ArrayLike | None = None, output: Sequence[str] = ()
    ) -> "FeaturePoints":
        """Check and keep feature points.

        Args:
            uv: (M, 2), M > 0; in the unit square, that of patch i further by 2 i in u.
            positions: (M, 3) m.
            weights: (M,) positive, or None for 1 each.
            output: Patch or frame of the robot's description, or skin, of each point; parameters of a frame do not
                count.

        Raises:
            SoftformError: On other sizes, NaN, parameters outside the unit square or weights that are not positive.
        """
        places, wanted = np.asarray(uv, dtype=np.float64), np.asarray(positions, dtype=np.float64)
        count = len(places) if places.ndim == 2 else 0
        if places.shape != (count, 2) or wanted.shape != (count, 3) or not 0 < count <= MAX_FEATURES:
            raise SoftformError(
                f"Feature points have {places.shape} surface parameters and {wanted.shape} positions.",
                f"Give one (u, v) and one position x, y, z for each of 1 to {MAX_FEATURES} points.",
            )
        if not (np.isfinite(places).all() and np.isfinite(wanted).all()):
            raise SoftformError("A feature point has NaN or infinite numbers.", "Leave out points that are not known.")
        if not on_patches(places).all():
            raise SoftformError(
                f"The surface parameters of feature points reach from {places.min():g} to {places.max():g}.",
                "Give u and v between 0 and 1: they are parameters of the robot's surface, not metres.",
            )
        shares = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
        if shares.shape != (count,) or not np.isfinite(shares).all() or not (shares > 0.0).all():
            raise SoftformError(
                f"The weights of {count} feature points have shape {shares.shape} and the values {shares}.",
                "Give one positive weight for each point, or none at all.",
            )
        if len(output) not in (0, count):
            raise SoftformError(f"{count} feature points name {len(output)} outputs.", "Name one for each, or none.")
        return cls(places, wanted, shares, None, tuple(output))

    def __len__(self) -> int:
        return len(self.positions)

    def on(self, robot: Robot) -> "FeaturePoints":
        """The same points with parameters of the surface of a robot in place of outputs.

        Raises:
            SoftformError: If the robot has no such patch, frame or skin, or no such point on it.
        """
        each, anchors = zip(*(anchored_parameters(robot, *one) for one in self._by_output()), strict=True)
        if all(one is None for one in anchors):
            positions = self.positions
            if not robot.surfaces and robot.tip_dimensions == 2:  # it cannot leave its plane
                positions = positions * [1.0, 1.0, 0.0]
            return replace(self, uv=np.concatenate(each), positions=positions, output=())
        joined = Anchors.joined([one or Anchors.mean(1) for one in anchors])
        return replace(self, uv=np.concatenate(each), anchors=joined, output=())

    def _by_output(self) -> Iterator[tuple[str, Array]]:
        """Outputs and the parameters of each point, (1, 2)."""
        return zip(self.output or [""] * len(self), self.uv[:, None], strict=True)


def anchored_parameters(robot: Robot, output: str, uv: Array) -> tuple[Array, Anchors | None]:
    """Parameters (n, 2) of a robot's surface, and the point on them that an output means; None if it is the only one.

    Args:
        robot: The robot.
        output: Patch or frame of its description, its centre line, or skin; empty: its first patch, or its tip.
        uv: (1, 2) parameters on a patch or skin, 0 ... 1; of a frame they do not count, of the centre line v alone.

    Raises:
        SoftformError: If the robot has no such patch, frame or skin, or that no such point.
    """
    if output and output not in named_outputs(robot) and output in skin_names(robot):
        return load_skin(robot, output).anchored(uv, robot.rider_parameters)
    parameters = _output_parameters(robot, output, uv[0])
    return parameters, None if len(parameters) == 1 else Anchors.mean(len(parameters))


def named_outputs(robot: Robot) -> list[str]:
    """What a robot's description names: its patches, then its frames, then its centre line."""
    line = [] if robot.centre_line is None else [CENTRE_LINE]
    return [*(surface.patch for surface in robot.surfaces), *robot.frames, *line]


def _output_parameters(robot: Robot, output: str, uv: Array) -> Array:
    """Parameters (n, 2) of a robot's surface whose points have the mean that a patch's point uv (2,) or a frame is."""
    if output == CENTRE_LINE and robot.centre_line is not None:
        return robot.line_parameters(float(uv[1]))
    patches = [surface.patch for surface in robot.surfaces]
    if output in robot.frames or (not output and not patches):
        return robot.point_parameters(output) if patches else np.zeros((1, 2))
    if output and output not in patches:
        known = ", ".join(named_outputs(robot))
        raise SoftformError(f"Robot '{robot.name}' has no patch or frame '{output}' (known: {known}).", "Name one.")
    if not ((uv >= 0.0) & (uv <= 1.0)).all():
        raise SoftformError(
            f"The surface has no point u = {uv[0]:g}, v = {uv[1]:g}.",
            "Give u and v between 0 and 1, and the patch that they belong to by its name.",
        )
    return robot.patches.joined(patches.index(output) if output else 0, uv[None])
