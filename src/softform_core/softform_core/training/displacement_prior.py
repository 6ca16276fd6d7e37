"""Prior of how real copies of a robot differ from its simulation, learned from realities drawn at random.

Differences of realities are alike: a clamp that gives, a wall that is stiffer, an uneven sheet displace the surface in
patterns that many of them share. The prior holds such displacements; N_rbf's last layer predicts in coordinates in
which they are equally likely, so that its steps and its weight decay favour what realities do. Not in paper 000.
"""

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.files import write_atomically
from softform_core.paths import models_of
from softform_core.robots import Robot
from softform_core.surface.patch_set import PatchSet

PRIOR_FILE = "displacement_prior.npz"
_SCHEMA = "softform/displacement-prior", 1
_UNKNOWN = 0.1
"""Share of the variance that all directions get alike: a new reality may differ as none of the drawn did."""


@dataclass(frozen=True)
class DisplacementPrior:
    """Displacements of a surface that realities have shown.

    Attributes:
        modes: (K, P, 3) mm at `PatchSet.samples(P)`; a reality's displacement is about their sum with independent
            standard normal factors.
        card: Robot, its fingerprint, seeds of the realities and how they were made.
    """

    modes: Array
    card: dict[str, object]

    @classmethod
    def of(cls, displacements: Array, modes: int, card: dict[str, object]) -> "DisplacementPrior":
        """Return the strongest modes of (n, P, 3) mm displacements."""
        flat = displacements.reshape(len(displacements), -1) / np.sqrt(len(displacements))
        _, singular, right = np.linalg.svd(flat, full_matrices=False)
        kept = (singular[:, None] * right)[:modes]
        return cls(kept.reshape(len(kept), *displacements.shape[1:]), card)

    @property
    def sha256(self) -> str:
        """Digest of the modes."""
        return hashlib.sha256(np.ascontiguousarray(self.modes).tobytes()).hexdigest()

    def scaling(self, columns: Array) -> Array:
        """Return the square root of the covariance of amplitudes, its mean variance scaled to one.

        Args:
            columns: (P, d) displacement of the samples by each direction of the warp.

        Returns:
            (3 d, 3 d), for amplitudes (d, 3) row by row.
        """
        amplitudes = np.einsum("dp,kpx->kdx", np.linalg.pinv(columns), self.modes).reshape(len(self.modes), -1)
        covariance = amplitudes.T @ amplitudes
        size = len(covariance)
        covariance *= size / np.trace(covariance)
        covariance = (1.0 - _UNKNOWN) * covariance + _UNKNOWN * np.eye(size)
        variances, axes = np.linalg.eigh(covariance)
        return np.asarray((axes * np.sqrt(variances)) @ axes.T)

    def save(self, folder: Path) -> Path:
        """Write the prior into a robot's model folder; returns the file.

        Raises:
            SoftformError: If it cannot be written.
        """
        buffer = io.BytesIO()
        card = {"schema": _SCHEMA[0], "schema_version": _SCHEMA[1], **self.card}
        np.savez(buffer, modes=self.modes.astype(np.float32), card=np.array(json.dumps(card)))
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / PRIOR_FILE, buffer.getvalue())
        return folder / PRIOR_FILE


def load_displacement_prior(robot: Robot, folder: Path | None = None) -> DisplacementPrior | None:
    """Return the prior of a robot, by default in its model folder; None if there is none.

    Raises:
        SoftformError: If it is damaged, or of another robot.
    """
    path = (models_of(robot.name) if folder is None else folder) / PRIOR_FILE
    remedy = f"Learn it anew: ./softform train prior --robot {robot.given_as}; or remove it."
    try:
        with np.load(path, allow_pickle=False) as file:
            modes, card = file["modes"].astype(np.float64), json.loads(str(file["card"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise SoftformError(f"{path} cannot be read: {error}.", remedy) from error
    if (card.get("schema"), card.get("schema_version")) != _SCHEMA or not _is_of_surface(modes, robot.patches):
        raise SoftformError(f"{path} is no displacement prior of this form.", remedy)
    if card.get("robot_fingerprint") != robot.fingerprint():
        raise SoftformError(
            f"{path} was learned for another description of '{card.get('robot')}' than '{robot.name}' has now.", remedy
        )
    return DisplacementPrior(modes, card)


def _is_of_surface(modes: Array, patches: PatchSet) -> bool:
    if modes.ndim != 3 or modes.shape[2] != 3 or not np.isfinite(modes).all():
        return False
    return len(patches.samples(modes.shape[1])) == modes.shape[1]
