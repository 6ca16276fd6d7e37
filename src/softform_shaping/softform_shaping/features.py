"""Features of a shape by principal components of past shapes, and the interaction matrix that past moves give.

Shapes are columns: m (3n,) holds the nodes (n, 3) of a mesh row by row.
"""

from dataclasses import dataclass, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.errors import SoftformError

__all__ = [
    "Components",
    "Past",
    "cumulative_variance",
    "explained_variance",
    "inverse_interaction",
    "principal_components",
]


@dataclass(frozen=True, eq=False)
class Past:
    """The window of past shapes and moves.

    Attributes:
        shapes: M (3n, D + 1), m (Eq. 6).
        variations: dR (12, D), m and rad (Eq. 8).
    """

    shapes: Array
    variations: Array

    def __post_init__(self) -> None:
        """See that each move lies between two shapes."""
        if self.shapes.shape[1] != self.variations.shape[1] + 1 or self.variations.shape[1] < 1:
            raise SoftformError(
                f"{self.shapes.shape[1]} shapes and {self.variations.shape[1]} moves are no past.",
                "Give one shape more than there are moves between them.",
            )

    def with_new(self, shape: Array, variation: Array) -> "Past":
        """Append a shape (3n,) and the variation (12,) that led to it; the oldest of each leaves the window."""
        return replace(
            self,
            shapes=np.column_stack([self.shapes[:, 1:], shape]),
            variations=np.column_stack([self.variations[:, 1:], variation]),
        )


@dataclass(frozen=True, eq=False)
class Components:
    """What shapes are told by.

    Attributes:
        mean: (3n,) m.
        basis: U_k (3n, k), orthonormal.
        eigenvalues: (min(3n, D + 1),) of the covariance, m^2, falling.
    """

    mean: Array
    basis: Array
    eigenvalues: Array

    def features(self, shape: Array) -> Array:
        """Eq. 16: s = U_k^T (m - mean), (k,), or (k, c) of shapes (3n, c)."""
        mean = self.mean if shape.ndim == 1 else self.mean[:, None]
        return np.asarray(self.basis.T @ (shape - mean))


def principal_components(shapes: Array, count: int) -> Components:
    """Eq. 15 and the k components of highest variance of shapes (3n, D + 1).

    The singular vectors of M_m are the eigenvectors of its covariance, without a matrix of 3n x 3n.

    Raises:
        SoftformError: If so many components cannot be told from so few shapes.
    """
    if not 1 <= count <= min(shapes.shape[0], shapes.shape[1] - 1):
        raise SoftformError(
            f"{shapes.shape[1]} shapes have {shapes.shape[1] - 1} components at most, not {count}.",
            "Give more shapes, or ask for fewer features.",
        )
    mean = shapes.mean(axis=1)
    basis, singular, _ = np.linalg.svd(shapes - mean[:, None], full_matrices=False)
    return Components(mean, basis[:, :count], singular**2 / (shapes.shape[1] - 1))


def inverse_interaction(past: Past, components: Components) -> Array:
    """Eqs. 17-19: L^-1 = dR dS^+, (12, k), with S = U_k^T M_m and dS its successive differences."""
    change = np.diff(components.features(past.shapes), axis=1)
    return np.asarray(past.variations @ np.linalg.pinv(change))


def explained_variance(components: Components) -> Array:
    """Eq. 26: share of each component in the variance."""
    return np.asarray(components.eigenvalues / components.eigenvalues.sum())


def cumulative_variance(components: Components) -> Array:
    """Eq. 27: share of the first components, up to each of them."""
    return np.asarray(np.cumsum(explained_variance(components)))
