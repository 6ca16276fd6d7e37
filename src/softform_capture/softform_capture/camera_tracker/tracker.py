"""Follows one marker through the images of a camera that stands still."""

from dataclasses import dataclass, field

import cv2
import numpy as np

from softform_capture.camera_tracker.code_sheet import CodeDetector, Picture, exposure_fault
from softform_capture.camera_tracker.colour_marker import ColourMarker, find_marker
from softform_capture.camera_tracker.plane_view import Lens, PlaneView, SheetPlacement, view_plane
from softform_core.arrays import Array
from softform_core.errors import SoftformError


@dataclass(frozen=True)
class Sighting:
    """Result of tracking in one image.

    Attributes:
        position: (3,) m in the robot's frame, z = 0; NaN if the marker is lost.
        problem: Reason why it is lost, or another fault; empty if there is none.
    """

    position: Array
    problem: str

    @property
    def is_lost(self) -> bool:
        """Whether the marker was not found."""
        return not bool(np.isfinite(self.position).all())


@dataclass
class CameraTracker:
    """Finds the codes and the marker in image after image.

    Attributes:
        lens: Calibration of the lens; None if it draws straight lines.
        hold_codes: Time for which the last view of the codes is used while they are hidden, s.
        view: Last map from the plane to the image; None before the codes were seen.
    """

    detector: CodeDetector
    marker: ColourMarker = field(default_factory=ColourMarker)
    placement: SheetPlacement = field(default_factory=SheetPlacement)
    lens: Lens | None = None
    hold_codes: float = 5.0
    view: PlaneView | None = None
    _viewed_at: float = -np.inf

    def look(self, image: Picture, time: float) -> Sighting:
        """Find the marker in an image (height, width, 3), blue, green, red, that was taken at `time`, s."""
        try:
            if self.lens is not None:
                self.lens.require_size((image.shape[1], image.shape[0]))
        except SoftformError as error:
            return Sighting(np.full(3, np.nan), str(error))
        grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), dtype=np.uint8)
        problem = self._renew_view(grey, time)
        # Less than 0 where the clock was set back: the age of the view is unknown.
        if self.view is None or not 0.0 <= time - self._viewed_at <= self.hold_codes:
            return Sighting(np.full(3, np.nan), problem)
        try:
            x, y = find_marker(image, self.marker, self.view)
        except SoftformError as error:
            return Sighting(np.full(3, np.nan), exposure_fault(grey) or str(error))
        return Sighting(np.array([x, y, 0.0]), problem)

    def _renew_view(self, grey: Picture, time: float) -> str:
        """Take the view that the image gives, if it does; returns what hinders it."""
        try:
            self.view = view_plane(self.detector.find(grey), self.placement, self.lens)
            self._viewed_at = time
        except SoftformError as error:
            return exposure_fault(grey) or str(error)
        return ""
