"""Tree of rigid transforms between frames over time. Without ROS."""

import bisect
import threading
from collections import deque
from itertools import pairwise

import numpy as np
from scipy.spatial.transform import Rotation

from softform_core.errors import SoftformError
from softform_core.geometry.rigid import RigidTransform

MOST_FRAMES, LONGEST_NAME = 1000, 200
"""Most frames that are remembered, and most characters of a name: anybody may publish transforms."""

_MOST_PLACES = 5000
_TOLD_FRAMES = 20

KEPT = 10.0
"""Time for which moving transforms are remembered, s, as in tf2."""

LATENESS = 0.2
"""Time by which a frame's newest transform may be older than the moment asked for and is taken instead, s."""


class TransformTree:
    """Frames, each in its parent; usable from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._parents: dict[str, str] = {}
        self._moving: dict[str, deque[tuple[float, RigidTransform]]] = {}
        self._static: dict[str, RigidTransform] = {}

    def put(self, parent: str, child: str, stamp: float | None, place: RigidTransform) -> None:
        """Note where a frame stands.

        Args:
            parent: Frame in which it stands.
            child: The frame.
            stamp: Time, s; None for a frame that never moves.
            place: Takes points of the child into the parent, m.

        Raises:
            SoftformError: If names are empty, the same or too long, the numbers are no rigid motion, or there are too
                many frames already.
        """
        if not parent or not child or parent == child:
            raise SoftformError(f"'{child}' cannot stand in '{parent}'.", "Name two frames.")
        if max(len(parent), len(child)) > LONGEST_NAME:
            raise SoftformError(f"A frame's name is longer than {LONGEST_NAME}.", "Look at who publishes it.")
        if not (np.isfinite(place.rotation).all() and np.isfinite(place.translation).all()):
            raise SoftformError(f"The transform of '{child}' in '{parent}' is not finite.", "Look at who publishes it.")
        with self._lock:
            if child not in self._parents and len(self._parents) >= MOST_FRAMES:
                raise SoftformError(f"TF has more than {MOST_FRAMES} frames.", "Look at who publishes them.")
            is_moved_over = self._parents.get(child) != parent
            self._parents[child] = parent
            if stamp is None:
                self._moving.pop(child, None)
                self._static[child] = place
                return
            self._static.pop(child, None)
            history = self._moving.setdefault(child, deque())
            if is_moved_over or (history and stamp < history[-1][0] - KEPT):  # the clock was set back
                history.clear()
            at = bisect.bisect_left(history, stamp, key=lambda one: one[0])
            if at < len(history) and history[at][0] == stamp:  # some publish one stamp for ever
                history[at] = stamp, place
                return
            history.insert(at, (stamp, place))
            while history[0][0] < history[-1][0] - KEPT or len(history) > _MOST_PLACES:
                history.popleft()

    def lookup(self, target: str, source: str, stamp: float) -> RigidTransform:
        """Return the motion that takes points of one frame into another.

        Args:
            target: Frame of the points afterwards.
            source: Frame of the points now.
            stamp: Time, s.

        Raises:
            SoftformError: If a frame is unknown, the frames are not connected or stand in each other in a loop, or a
                transform is not known at that time.
        """
        with self._lock:
            up, down = self._ancestors(source), self._ancestors(target)
            common = next((frame for frame in up if frame in down), None)
            if common is None:
                raise SoftformError(
                    f"TF does not connect '{source}', which stands in '{up[-1]}', with '{target}' in '{down[-1]}'.",
                    "Publish a transform that connects them.",
                )
            rising = self._along(up[: up.index(common)], stamp)
            return self._along(down[: down.index(common)], stamp).inverse().after(rising)

    def root(self, frame: str) -> str:
        """Return the frame in which a frame stands in the end; itself if it stands in none.

        Raises:
            SoftformError: If frames stand in each other in a loop.
        """
        with self._lock:
            return self._ancestors(frame)[-1] if self._is_known(frame) else frame

    def _is_known(self, frame: str) -> bool:
        return frame in self._parents or frame in self._parents.values()

    def _ancestors(self, frame: str) -> list[str]:
        """Return the frame, its parent, and so on."""
        if not self._is_known(frame):
            known = ", ".join(sorted({*self._parents, *self._parents.values()})[:_TOLD_FRAMES]) or "none"
            raise SoftformError(f"TF knows no frame '{frame}' (known: {known}).", "Publish where it stands.")
        found = [frame]
        while (parent := self._parents.get(found[-1])) is not None:
            if parent in found:
                loop = " in ".join([*found[found.index(parent) :], parent])
                raise SoftformError(f"Frames stand in each other: {loop}.", "Let one node publish each frame.")
            found.append(parent)
        return found

    def _along(self, frames: list[str], stamp: float) -> RigidTransform:
        """Return the transform from the first frame into the parent of the last."""
        motion = RigidTransform()
        for frame in frames:
            motion = self._place(frame, stamp).after(motion)
        return motion

    def _place(self, frame: str, stamp: float) -> RigidTransform:
        if frame in self._static:
            return self._static[frame]
        history, parent = self._moving[frame], self._parents[frame]
        first, last = history[0], history[-1]
        if stamp > last[0] + LATENESS:
            raise SoftformError(
                f"TF is stale: the pose of '{frame}' in '{parent}' was last published {stamp - last[0]:.1f} s before.",
                "Is its publisher running, and are the clocks synchronised?",
            )
        if stamp < first[0]:
            raise SoftformError(
                f"Where '{frame}' stands in '{parent}' is remembered from {first[0] - stamp:.1f} s after "
                "that moment on.",
                "Send it sooner; a goal may have a zero stamp, which means now.",
            )
        return last[1] if stamp >= last[0] else _between(history, stamp)


def _between(history: "deque[tuple[float, RigidTransform]]", stamp: float) -> RigidTransform:
    """Return a place between two that are known: straight, and about one axis."""
    (t0, a), (t1, b) = next(pair for pair in pairwise(history) if pair[0][0] <= stamp < pair[1][0])
    share = (stamp - t0) / (t1 - t0)
    turn = Rotation.from_matrix(b.rotation @ a.rotation.T).as_rotvec()
    rotation = Rotation.from_rotvec(share * turn).as_matrix() @ a.rotation
    return RigidTransform(rotation, (1.0 - share) * a.translation + share * b.translation)
