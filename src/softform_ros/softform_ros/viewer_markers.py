"""What our messages hold, as markers of RViz: other tools and bags show it without our definitions."""

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Vector3
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from softform_core.contact.barrier import Touch
from softform_core.robots.contact import ITSELF
from softform_core.units import MM_PER_M
from softform_interfaces.msg import MarkerFrame

_CIVIDIS = np.array([[0, 34, 78], [67, 78, 108], [125, 124, 120], [188, 174, 108], [254, 232, 56]]) / 255.0
"""Colours of a scale from its beginning to its end, alike with and without colour blindness."""

_PLAIN = (0.75, 0.78, 0.82)
_STALE_ALPHA = 0.35
_LIFE = Duration(sec=3)
"""After which a marker that nobody renews is shown no more: its publisher has ended."""

_SPHERE = 0.008
"""Diameter of a captured marker, m."""

_ARROW = 0.3
"""Length of the arrow of the largest force, of the robot's size: `text` says how many newtons it stands for."""
_RED = ColorRGBA(r=0.85, g=0.15, b=0.1, a=1.0)


def surface_marker(
    points: NDArray[np.floating],
    triangles: NDArray[np.integer],
    sigma: NDArray[np.floating] | None,
    header: Header,
    is_stale: bool,
) -> Marker:
    """Return a surface as a triangle list whose colours are its uncertainty; `text` says the ends of their scale.

    Args:
        points: (V, 3) vertices, m.
        triangles: (T, 3) indices.
        sigma: (V,) one standard deviation along the normal, m; None where it is not known: then it has one colour.
        header: Frame and stamp.
        is_stale: Whether it is the rest shape, as nothing is measured: then it is nearly transparent.
    """
    top = 0.0 if sigma is None else float(sigma.max())
    if sigma is None or top <= 0.0:
        rgb, text = np.tile(_PLAIN, (len(points), 1)), "uncertainty not known"
    else:
        place = np.clip(sigma / top, 0.0, 1.0) * (len(_CIVIDIS) - 1)
        rgb = np.column_stack([np.interp(place, range(len(_CIVIDIS)), _CIVIDIS[:, i]) for i in range(3)])
        text = f"one standard deviation along the normal, 0 (blue) to {top * MM_PER_M:.2g} mm (yellow)"
    # Corners share their vertex's objects: to make them takes longer than all the rest.
    corners = triangles.ravel().tolist()
    places = [Point(x=x, y=y, z=z) for x, y, z in np.asarray(points, dtype=float).tolist()]
    alpha = _STALE_ALPHA if is_stale else 1.0
    colours = [ColorRGBA(r=r, g=g, b=b, a=alpha) for r, g, b in rgb.tolist()]
    return Marker(
        header=header,
        ns="surface",
        type=Marker.TRIANGLE_LIST,
        scale=Vector3(x=1.0, y=1.0, z=1.0),
        color=ColorRGBA(r=1.0, g=1.0, b=1.0, a=alpha),
        lifetime=_LIFE,
        points=[places[corner] for corner in corners],
        colors=[colours[corner] for corner in corners],
        text=text,
    )


def captured_spheres(frame: MarkerFrame) -> Marker:
    """Return the markers of a frame that are seen, as spheres; without any it takes the earlier ones away."""
    seen = [place for place, is_seen in zip(frame.position, frame.visible, strict=True) if is_seen]
    return Marker(
        header=frame.header,
        ns="captured",
        type=Marker.SPHERE_LIST,
        action=Marker.ADD if seen else Marker.DELETE,
        scale=Vector3(x=_SPHERE, y=_SPHERE, z=_SPHERE),
        color=ColorRGBA(r=1.0, g=0.6, b=0.15, a=1.0),
        lifetime=_LIFE,
        points=seen,
    )


def touch_markers(touches: Sequence[Touch], size: float, header: Header) -> MarkerArray:
    """Return where a robot touches what, and how hard: points, the hardest first, an arrow along each force, its text.

    Args:
        touches: Of a model with contact; none takes the earlier ones away.
        size: Largest extent of the robot, m.
        header: Frame and stamp.
    """
    markers = [Marker(header=header, action=Marker.DELETEALL)]
    most = max((float(np.linalg.norm(touch.force)) for touch in touches), default=0.0)
    for number, touch in enumerate(touches):
        hardest = np.argsort(-np.linalg.norm(touch.forces, axis=1))
        places = [Point(x=x, y=y, z=z) for x, y, z in touch.points[hardest].tolist()]
        sphere = Vector3(x=0.01 * size, y=0.01 * size, z=0.01 * size)
        common = {"header": header, "id": number, "color": _RED, "lifetime": _LIFE}
        markers.append(Marker(ns="contact points", type=Marker.SPHERE_LIST, scale=sphere, points=places, **common))
        force = float(np.linalg.norm(touch.force))
        pressing = float(np.linalg.norm(touch.forces, axis=1).sum())
        end = touch.place
        if force > 0.0 and touch.name != ITSELF:
            end = touch.place + _ARROW * size / most * touch.force
            arrow = [Point(x=x, y=y, z=z) for x, y, z in np.stack([touch.place, end]).tolist()]
            thick = Vector3(x=0.01 * size, y=0.02 * size, z=0.0)
            markers.append(Marker(ns="contact force", type=Marker.ARROW, scale=thick, points=arrow, **common))
        text = Marker(ns="contact text", type=Marker.TEXT_VIEW_FACING, scale=Vector3(z=0.05 * size), **common)
        text.text = f"{touch.name} {pressing if touch.name == ITSELF else force:.3g} N"
        text.pose.position = Point(x=float(end[0]), y=float(end[1]), z=float(end[2]))
        markers.append(text)
    return MarkerArray(markers=markers)
