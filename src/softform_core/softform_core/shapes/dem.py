"""A measured landscape as a target: the digital elevation model that matplotlib ships, brought into a membrane's reach.

The model is `jacksboro_fault_dem.npz` (SRTM, 344 x 403 heights about the Jacksboro fault, Tennessee). Choices:

- the middle square of about 30 km is laid on the membrane, so the land is shrunk evenly in x and y;
- a Gaussian of `SMOOTHING` chambers removes what is finer than a chamber, which no actuation could follow;
- heights are stretched so that the highest point is `HEIGHT` of the shorter side (32 mm on the 320 mm membrane; the
  membrane's middle rises about twice that at full pressure);
- `FLOOR` of the height is put under the land, and all of it is multiplied by (1 - (x/a)^2)(1 - (y/b)^2), the shape of a
  slightly inflated membrane, as the clamped frame stays at z = 0.
"""

import numpy as np
from matplotlib.cbook import get_sample_data
from scipy.interpolate import RectBivariateSpline
from scipy.ndimage import gaussian_filter

from softform_core.errors import SoftformError
from softform_core.robots import Robot
from softform_core.shapes.shape import Shape

HEIGHT = 0.1
"""Highest point, of the membrane's shorter side."""

SMOOTHING = 1.0 / 3.0
"""Standard deviation of the smoothing, of a chamber's side."""

FLOOR = 0.3
"""Height of the lowest land, of the highest, before it is drawn down to the frame."""

GRID = 81
"""Vertices along each side of the target's mesh."""


def dem_target(robot: Robot) -> Shape:
    """The landscape as a mesh over the membrane of `robot`, in its frame.

    Returns:
        Mesh of `GRID` x `GRID` vertices, m; z = 0 along the frame, faces upwards.

    Raises:
        SoftformError: If this matplotlib does not bring the elevation model.
    """
    chamber = robot.body.outlines()[0]
    width, length = robot.extent
    land = _square_land()
    smoothing = [SMOOTHING * land.shape[0] * chamber.height / length, SMOOTHING * land.shape[1] * chamber.width / width]
    smooth = gaussian_filter(land, smoothing, mode="nearest")
    unit_rows, unit_columns = (np.linspace(-1.0, 1.0, count) for count in land.shape)
    unit = np.linspace(-1.0, 1.0, GRID)
    relief = RectBivariateSpline(unit_rows, unit_columns, smooth)(unit, unit)
    relief = (relief - relief.min()) / np.ptp(relief)
    height = (FLOOR + (1.0 - FLOOR) * relief) * np.outer(1.0 - unit**2, 1.0 - unit**2)
    height *= HEIGHT * min(width, length) / height.max()
    y, x = np.meshgrid(unit * length / 2, unit * width / 2, indexing="ij")
    vertices = np.stack([x, y, height], axis=-1).reshape(-1, 3)
    return Shape.from_mesh(vertices, _grid_faces(GRID))


def _square_land() -> np.ndarray:
    """Heights of the middle square, m; rows from south to north, columns from west to east."""
    try:
        with np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)) as model:
            heights = np.asarray(model["elevation"], dtype=np.float64)[::-1]
            # A degree of longitude is shorter than one of latitude.
            middle = np.radians(0.5 * (float(model["ymin"]) + float(model["ymax"])))
            east, north = float(model["dx"]) * np.cos(middle), float(model["dy"])
    except (OSError, KeyError, ValueError) as error:
        raise SoftformError(
            f"matplotlib's sample elevation model cannot be read: {error}.",
            "Install matplotlib with its sample data, or give another target.",
        ) from error
    side = min(heights.shape[0] * north, heights.shape[1] * east)
    rows, columns = round(side / north), round(side / east)
    first_row, first_column = (heights.shape[0] - rows) // 2, (heights.shape[1] - columns) // 2
    return heights[first_row : first_row + rows, first_column : first_column + columns]


def _grid_faces(side: int) -> np.ndarray:
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
    lower = np.stack([corner, corner + 1, corner + side + 1], axis=1)
    upper = np.stack([corner, corner + side + 1, corner + side], axis=1)
    return np.concatenate([lower, upper])
