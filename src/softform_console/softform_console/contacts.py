"""Where a robot touches something, from the markers of `predicted_contact` to what pages are told."""

from contextlib import suppress

import numpy as np
from geometry_msgs.msg import Point
from visualization_msgs.msg import Marker, MarkerArray

from softform_console.protocol import Contact

_MOST_POINTS = 60
"""Of a contact: the hardest; more are not told apart on a page."""


def contacts_of(message: MarkerArray, frame: str) -> list[Contact]:
    """Return what `viewer_markers.touch_markers` has said in a frame; what is in another frame or malformed is not."""
    by_kind: dict[str, dict[int, Marker]] = {"contact points": {}, "contact force": {}, "contact text": {}}
    for marker in message.markers:
        if marker.action == Marker.ADD and marker.header.frame_id == frame:
            by_kind.get(marker.ns, {})[marker.id] = marker
    points, forces, texts = by_kind.values()
    found = []
    for number in sorted(points.keys() & texts.keys()):
        with suppress(ValueError, IndexError):  # whoever publishes there may say anything
            found.append(_contact(points[number], forces.get(number), texts[number]))
    lengths = [float(np.linalg.norm(np.subtract(one.end, one.place))) for one in found]
    longest = max(lengths, default=0.0) or 1.0
    return [one.model_copy(update={"share": length / longest}) for one, length in zip(found, lengths, strict=True)]


def _contact(points: Marker, force: Marker | None, text: Marker) -> Contact:
    end = _place(text.pose.position)
    place = end if force is None else _place(force.points[0])
    name, newtons, _ = text.text.rsplit(" ", 2)
    shown = [_place(point) for point in points.points[:_MOST_POINTS]]
    return Contact(name=name, newtons=float(newtons), points=shown, place=place, end=end, share=0.0)


def _place(point: Point) -> tuple[float, float, float]:
    return point.x, point.y, point.z
