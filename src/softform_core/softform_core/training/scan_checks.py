"""Scans that must not be learned from unseen: another robot's, mirrored, turned, noise; and predictions that fold.

Before training, each frame's cloud is compared with the simulated surface at its actuation. A cloud that lies farther
away than the other frames' clouds, by much beside the robot's size, is rejected, and so is one that fits much better
once it is mirrored or turned. What all clouds have in common is the gap that is to be learned. After training, frames
that the model explains far worse than the others are named.
"""

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.evaluation.uncertainty import measurement_noise
from softform_core.forward.pipeline import ForwardPipeline
from softform_core.frames.agreement import mirrored_or_turned
from softform_core.frames.frames import Frames
from softform_core.training.sim_to_real_losses import Clouds
from softform_core.training.trained_sim_to_real import FrameFlag
from softform_core.units import MM_PER_M

_ELSEWHERE = 0.5
"""Median distance to the simulated surface, over the robot's size, beyond which a frame shows something else."""
_ASIDE = 0.1
"""Like `_ELSEWHERE`, of a frame far outside the others: a gap in which all frames lie is to be learned."""
_BETTER = 0.6
"""A cloud is a mirror image if its misfit falls below this share once it is mirrored. Right ones keep 0.8 of it;
with two fifths of the surface missing, one of 80 kept 0.64."""
_NOISE = 0.015
"""Largest difference of neighbours over the robot's size; on a surface it is much less."""
_HIDDEN = 0.6
"""Largest share of the simulated surface without captured points near; the paper learns with up to 40 % missing."""
_NEAR = 5.0
"""Distance that counts as near, in spacings of the captured points, beside the median distance."""
_OUTLYING = 8.0
"""Distance above the middle of all frames' residuals, in robust standard deviations; at least twice that middle."""
_EXAMINED = 300
"""Number of a cloud's points that are checked."""


def check_scans(clouds: Clouds, points: Tensor, normals: Tensor) -> None:
    """Reject frames unlike the simulated surfaces, (n, P, 3) mm with unit normals, at their actuations.

    Raises:
        SoftformError: Naming all such frames and why.
    """
    flags = scan_faults(clouds, points, normals)
    if flags:
        shown = "; ".join(f"frame {flag.frame}: {flag.reason}" for flag in flags[:5])
        more = f"; and {len(flags) - 5} more" if len(flags) > 5 else ""
        raise SoftformError(
            f"{len(flags)} of {len(points)} frames cannot be of this robot at their actuation: {shown}{more}.",
            "Leave these frames out, or capture them again; look at the registration of the scanner.",
        )


def scan_faults(clouds: Clouds, points: Tensor, normals: Tensor) -> list[FrameFlag]:
    """Return frames that `check_scans` rejects; arguments as there."""
    simulated = points.numpy().astype(np.float64)
    corners = simulated.reshape(-1, 3).min(axis=0), simulated.reshape(-1, 3).max(axis=0)
    middle, size = (corners[0] + corners[1]) / 2.0, float(np.max(corners[1] - corners[0]))
    surfaces = [_Surface(*pair) for pair in zip(simulated, normals.numpy().astype(np.float64), strict=True)]
    captured = [
        cloud[weight > 0.0].astype(np.float64)
        for cloud, weight in zip(clouds.points.numpy(), clouds.weight.numpy(), strict=True)
    ]
    away = np.array([surface.away(cloud) for surface, cloud in zip(surfaces, captured, strict=True)])
    limit = min(max(_ASIDE * size, _outlying(away)), _ELSEWHERE * size)
    flags = []
    for number, (surface, cloud) in enumerate(zip(surfaces, captured, strict=True)):
        if away[number] > limit:
            reason = f"it lies {away[number]:.0f} mm from the simulated surface, others {np.median(away):.0f} mm"
        else:
            reason = surface.fault(cloud, size, away[number]) or _better_image(cloud, surface, middle)
        if reason:
            flags.append(FrameFlag(number, reason))
    return flags


def unfit_scans(frames: Frames, simulated: ForwardPipeline) -> list[FrameFlag]:
    """Return frames that `check_scans` rejects, to be left out before training."""
    clouds = Clouds.of([MM_PER_M * cloud for cloud in frames.clouds], frames.normals)
    points, normals = (torch.from_numpy(of(frames.actuation)).float() for of in (simulated.points, simulated.normals))
    return scan_faults(clouds, points, normals)


class _Surface:
    """One simulated surface: points (P, 3) mm, unit normals (P, 3)."""

    def __init__(self, points: Array, normals: Array) -> None:
        self._points, self._normals, self._tree = points, normals, cKDTree(points)

    def misfit(self, cloud: Array) -> float:
        """Return the root of the mean squared distance along the surface's normals, outliers left out, mm."""
        distance, nearest = self._tree.query(cloud)
        along = np.abs(np.sum((cloud - self._points[nearest]) * self._normals[nearest], axis=1))
        # Beside the surface a distance along its normals says nothing.
        along = np.maximum(along, distance - 2.0 * float(np.median(distance)))
        return float(np.sqrt(np.mean(np.sort(along)[: int(0.95 * len(along))] ** 2)))

    def away(self, cloud: Array) -> float:
        """Return the median distance of the cloud, mm."""
        return float(np.median(self._tree.query(cloud)[0]))

    def fault(self, cloud: Array, size: float, away: float) -> str:
        """Return why a cloud so far away shows something else, whatever its orientation; empty if it may not."""
        nearest = self._tree.query(cloud)[1]
        along = np.sum((cloud - self._points[nearest]) * self._normals[nearest], axis=1)
        noise = measurement_noise(self._points[nearest], along)
        if noise > _NOISE * size:
            return f"neighbouring points lie {noise:.0f} mm apart in depth: it is noise"
        tree = cKDTree(cloud)
        spacing = float(np.median(tree.query(cloud, k=2)[0][:, 1]))
        hidden = float(np.mean(tree.query(self._points)[0] > away + _NEAR * spacing))
        if hidden > _HIDDEN:
            return f"it shows nothing of {hidden:.0%} of the surface"
        return ""


def _better_image(cloud: Array, surface: _Surface, middle: Array) -> str:
    """Return by which mirroring or turn about the robot's middle the cloud fits far better; empty if by none."""
    cloud = cloud[:: max(1, len(cloud) // _EXAMINED)]
    best, how = _BETTER * surface.misfit(cloud), ""
    for image in mirrored_or_turned():
        misfit = surface.misfit((cloud - middle) @ image.T + middle)
        if misfit < best:
            best, how = misfit, "mirrored" if np.linalg.det(image) < 0.0 else "turned"
    return f"it fits far better {how}" if how else ""


def residual_flags(residual: Array) -> list[FrameFlag]:
    """Return frames that a trained model explains far worse than others, by their mean residuals (n,) mm."""
    middle, limit = float(np.median(residual)), _outlying(residual)
    return [
        FrameFlag(int(number), f"the model explains it to {residual[number]:.2f} mm, others to {middle:.2f} mm")
        for number in np.flatnonzero(residual > limit)
    ]


def _outlying(values: Array) -> float:
    """Return the limit beyond which one of the frames' values (n,) lies far outside the others."""
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    return max(middle + _OUTLYING * spread, 2.0 * middle)


def fold_flags(normals: Tensor, simulated: Tensor) -> list[FrameFlag]:
    """Return frames whose predicted surface folds: du x dv against the simulated one's, unit normals (n, P, 3)."""
    folded = ((normals * simulated).sum(-1) <= 0.0).sum(dim=1)
    return [
        FrameFlag(int(number), f"the prediction folds at {int(folded[number])} of {normals.shape[1]} points")
        for number in torch.nonzero(folded)[:, 0]
    ]
