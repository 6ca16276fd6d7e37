"""How far predicted shapes are from the true ones, in the units of paper 004 and in millimetres."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.units import MM_PER_M
from softform_studies.hysteresis.centre_lines import CentreLines, Line
from softform_studies.hysteresis.losses import chamfer
from softform_studies.sim_to_real.judge import search_tree
from softform_studies.tendon_robot.shapes import RecordedShapes


class Judge:
    """Measures predictions of shapes against their clouds and their truth.

    Args:
        lines: Of the robot.
        shapes: By which it judges.
        candidates: (n, c, 2 C + 1) bends, at the best of which the fit of a centre line to a predicted cloud begins:
            those of the measured clouds' fits.
    """

    def __init__(self, lines: CentreLines, shapes: RecordedShapes, candidates: Array) -> None:
        self._lines, self._shapes, self._candidates = lines, shapes, candidates
        vertices = shapes.skin.vertices(shapes.centre_line, shapes.directors) / MM_PER_M  # trees measure in mm
        self._trees = [search_tree(one, shapes.skin.faces) for one in vertices]

    def of_line(self, line: Line, clouds: NDArray[np.floating]) -> dict[str, float]:
        """Return the figures of predicted lines and of the clouds about them (n, M, 3) mm."""
        return self._figures(line, clouds, self._lines.carried(line))

    def of_clouds(self, clouds: NDArray[np.floating]) -> dict[str, float]:
        """Return the figures of predicted clouds (n, M, 3) mm, whose tip and centre line are those fitted to them."""
        line = self._lines.lines(self._lines.fitted_from(clouds, self._candidates))
        return self._figures(line, clouds, np.asarray(clouds, dtype=np.float64))

    def _figures(self, line: Line, clouds: NDArray[np.floating], surface: Array) -> dict[str, float]:
        truth = self._shapes
        between = [chamfer(one, other) for one, other in zip(clouds, truth.cloud, strict=True)]
        off = np.linalg.norm(line.points - truth.centre_line, axis=2)
        tip = off[:, -1]
        apart = [tree.query(points).distances.mean() for tree, points in zip(self._trees, surface, strict=True)]
        return {
            "chamfer_m2": round(float(np.mean(between)) / MM_PER_M**2, 6),
            "chamfer_sd_m2": round(float(np.std(between)) / MM_PER_M**2, 6),
            "rms_mm": round(float(np.sqrt((off**2).mean())), 3),
            "tip_mm": round(float(tip.mean()), 3),
            "tip_sd_mm": round(float(tip.std()), 3),
            "surface_mm": round(float(np.mean(apart)), 3),
        }


@dataclass(frozen=True, eq=False)
class Carrier:
    """Clouds about predicted lines: that of the learned shape whose path is nearest, carried along by its directors.

    What two cameras do not see is missing in it as in theirs, without that anything is known of them.

    Attributes:
        lines: Fitted centre lines of what was learned from.
        clouds: (n, M, 3) mm, of the same.
        keys: (n, f) m, present and prior configurations of the same.
    """

    lines: Line
    clouds: NDArray[np.floating]
    keys: Array

    def clouds_of(self, line: Line, keys: Array) -> Array:
        """Return the clouds (m, M, 3) mm of lines at present and prior configurations (m, f)."""
        nearest = ((keys[:, None] - self.keys) ** 2).sum(axis=2).argmin(axis=1)
        found = np.zeros((len(keys), *self.clouds.shape[1:]))
        for number, like in enumerate(nearest):
            cloud = self.clouds[like]
            station = ((cloud[:, None] - self.lines.points[like]) ** 2).sum(axis=2).argmin(axis=1)
            local = cloud - self.lines.points[like, station]
            local = (local[:, None] @ self.lines.directors[like, station])[:, 0]
            found[number] = line.points[number, station] + (line.directors[number, station] @ local[..., None])[..., 0]
        return found
