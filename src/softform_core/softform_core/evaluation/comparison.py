"""One predicted surface against one captured shape: a scan without correspondences, or markers with them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial import cKDTree

from softform_core.arrays import Array
from softform_core.evaluation.metrics import chamfer_distance, folded_cells, hausdorff_distance, normal_errors
from softform_core.evaluation.uncertainty import measurement_noise
from softform_core.forward.forward_model import SurfaceModel
from softform_core.inverse.closest_points import closest_points_on
from softform_core.shapes.shape import Shape
from softform_core.surface.patch_set import SHEET, PatchSet
from softform_core.units import MM_PER_M

_BESIDE_PART = 0.01
"""Distance sideways of the surface's rim, over its size, beyond which captured points show something else."""


@dataclass(frozen=True)
class PredictedSurface:
    """A surface predicted for one actuation, sampled on even grids of parameters.

    Attributes:
        points: (P, 3) mm over `patches.samples(P)`.
        sigma: (P,) mm, one standard deviation along the normal; None without an uncertainty.
        patches: Parametrisation of the surface.
    """

    points: Array
    sigma: Array | None = None
    patches: PatchSet = SHEET

    @classmethod
    def of(cls, pipeline: SurfaceModel, actuation: Array, sigma: Array | None = None) -> "PredictedSurface":
        """Predict the surface for (m,) by a pipeline over `patches.samples`, with deviations (P,) mm if known."""
        return cls(pipeline.points(actuation), sigma, pipeline.patches)

    @cached_property
    def mesh(self) -> Shape:
        """The grids as triangles with vertex normals du x dv; metres."""
        return Shape.from_mesh(self.points / MM_PER_M, self.patches.triangles(len(self.points)))

    @property
    def normals(self) -> Array:
        """Unit normals du x dv, (P, 3)."""
        normals = self.mesh.normals
        assert normals is not None
        return normals

    def at(self, uv: Array, values: Array) -> Array:
        """Return values (P, ...) of the samples, interpolated at parameters (M, 2): (M, ...)."""
        place, local = self.patches.split(uv)
        found = np.empty((len(local), *values.shape[1:]))
        for i, (patch, grid) in enumerate(zip(self.patches.patches, self.patches.grids(values), strict=True)):
            lines = patch.grid_lines(len(values) // len(self.patches))
            found[place == i] = RegularGridInterpolator(lines, grid)(local[place == i])
        return found


@dataclass(frozen=True)
class Comparison:
    """Difference between one prediction and one captured shape.

    Attributes:
        captured: (M, 3) mm, captured points or visible markers that were compared.
        distances: (M,) mm, of each to the predicted surface; of a marker to its own point on it.
        along_normal: (M,) mm, the same along the surface's normal, signed.
        sigma: (M,) mm, predicted standard deviation there; None if the model does not tell.
        error_map: (P,) mm, distance of each predicted point to the captured surface; NaN where it was not seen.
        normal_errors: (P,), Eq. 21; NaN where it was not seen.
        noise_mm: Standard deviation of the measurement; None for markers, too few to tell it from errors.
        chamfer_mm2: Eq. 19 over the captured points and the predicted ones that are seen; None for markers.
        hausdorff_mm: Eq. 18 over the same; None for markers.
        beside: Captured points left out because they lie beside the surface.
    """

    captured: Array
    distances: Array
    along_normal: Array
    sigma: Array | None
    surface: PredictedSurface
    error_map: Array
    normal_errors: Array
    noise_mm: float | None = None
    chamfer_mm2: float | None = None
    hausdorff_mm: float | None = None
    beside: int = 0

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Mask of the predicted points that have a captured counterpart, (P,)."""
        return np.isfinite(self.error_map)

    @cached_property
    def folded(self) -> int:
        """Number of cells of the grids at whose border the normal flips."""
        patches = self.surface.patches
        grids = zip(patches.patches, np.split(self.surface.points, len(patches)), strict=True)
        return sum(int(folded_cells(patch.square(points), patch.periodic).sum()) for patch, points in grids)

    def within(self, deviations: float) -> float | None:
        """Return the share of captured points within so many standard deviations, measurement noise included."""
        if self.sigma is None:
            return None
        return float((np.abs(self.along_normal) <= deviations * np.hypot(self.sigma, self.noise_mm or 0.0)).mean())


def compare_scan(surface: PredictedSurface, cloud: Array) -> Comparison:
    """Compare with a cloud, (M, 3) m: captured points to the surface, and predicted points to it where it has no hole.

    Raises:
        SoftformError: If the cloud cannot be compared with.
    """
    points = np.asarray(cloud, dtype=np.float64) * MM_PER_M
    predicted = surface.points
    back = closest_points_on(surface.mesh).query(points)
    offset = points - back.points
    along = np.einsum("mx,mx->m", offset, back.normals)
    sideways = np.sqrt(np.maximum(back.distances**2 - along**2, 0.0))
    size = float(np.linalg.norm(np.ptp(predicted, axis=0)))
    beside = sideways > _BESIDE_PART * size
    on_surface = back.points[~beside]
    points, along, distances = points[~beside], along[~beside], back.distances[~beside]

    forth = closest_points_on(Shape.from_cloud(points / MM_PER_M)).query(predicted)
    seen = ~forth.on_border
    normals = forth.normals
    # A prediction knows its patches, not its body; which of them are tubes is what `Body.goes_around` goes by, too. The
    # normals of a cloud point upwards (`estimate_normals`), those of a tube also downwards.
    if surface.patches.has_tube:
        normals = np.copysign(1.0, np.einsum("px,px->p", normals, surface.normals))[:, None] * normals
    nearest = cKDTree(predicted).query(on_surface)[1]
    # A distance to an edge is larger than its part along either normal; with the sign of that, noise averages out.
    signed = np.copysign(distances, along)
    return Comparison(
        captured=points,
        distances=distances,
        along_normal=signed,
        sigma=None if surface.sigma is None else surface.sigma[nearest],
        # Neighbours on the surface: in space the nearest one tends to be the one with the same noise.
        noise_mm=measurement_noise(on_surface, signed),
        surface=surface,
        error_map=np.where(seen, forth.distances, np.nan),
        normal_errors=np.where(seen, normal_errors(surface.normals, normals), np.nan),
        chamfer_mm2=chamfer_distance(predicted[seen], points),
        hausdorff_mm=hausdorff_distance(predicted[seen], points),
        beside=int(beside.sum()),
    )


def compare_markers(surface: PredictedSurface, markers: Array, uv: Array) -> Comparison:
    """Compare with markers (M, 3) m, NaN where one is missing, at (M, 2); too few to distinguish noise from errors."""
    visible = np.isfinite(markers).all(axis=1)
    points, places = markers[visible] * MM_PER_M, uv[visible]
    offset = points - surface.at(places, surface.points)
    normals = surface.at(places, surface.normals)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    nowhere = np.full(len(surface.points), np.nan)
    return Comparison(
        captured=points,
        distances=np.linalg.norm(offset, axis=1),
        along_normal=np.einsum("mx,mx->m", offset, normals),
        sigma=None if surface.sigma is None else surface.at(places, surface.sigma),
        surface=surface,
        error_map=nowhere,
        normal_errors=nowhere,
    )
