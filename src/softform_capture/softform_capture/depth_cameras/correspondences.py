"""Points that someone has identified in the clouds of the cameras, in a file."""

from pathlib import Path

import numpy as np
import yaml
from pydantic import ValidationError

from softform_capture.depth_cameras.extrinsics import Points
from softform_core.errors import SoftformError
from softform_core.robots.description import Description, Place


class SeenPoints(Description):
    """What is seen in one camera's clouds: their topic and frame, and points by name, m in that frame."""

    topic: str
    frame_id: str
    points: dict[str, Place]

    def places(self) -> Points:
        """The points as arrays (3,) m."""
        return {name: np.array(place) for name, place in self.points.items()}


class Correspondences(Description):
    """The same points in the robot's frame (`places`, m; not all need be known) and in each camera's."""

    places: dict[str, Place]
    cameras: dict[str, SeenPoints]


def load_correspondences(path: Path) -> Correspondences:
    """Read a file of corresponding points.

    Raises:
        SoftformError: If it cannot be read or is no such file.
    """
    try:
        return Correspondences.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise SoftformError(f"{path} cannot be read: {error.strerror or error}.", "Check the path.") from error
    except (ValidationError, ValueError, yaml.YAMLError) as error:
        raise SoftformError(
            f"{path} is no file of corresponding points: {error}", "See docs/steps/capture.md for an example."
        ) from error
