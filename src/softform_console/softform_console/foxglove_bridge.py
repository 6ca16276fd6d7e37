"""What the page shows, for Foxglove and Lichtblick on this computer: clouds, mesh, and the state as JSON; view only."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softform_console.scene_frames import Kind, SceneItem
from softform_console.scene_store import Key, SceneStore
from softform_core.errors import SoftformError

HOST = "127.0.0.1"
"""It asks nobody who they are: no other computer may see it."""

_PERIOD_SECONDS, _MESH_SECONDS, _JOIN_SECONDS = 0.1, 0.5, 2.0
"""Periods of looking for news and, as its triangles are long lists, of sending a mesh, s."""

_TOPICS = {
    Kind.MESH: "predicted",
    Kind.CLOUD: "captured_cloud",
    Kind.MARKERS: "captured_markers",
    Kind.TARGET: "target",
}


class FoxgloveBridge:
    """Serves a robot's scene and state by the WebSocket protocol of Foxglove, while somebody is subscribed.

    Args:
        store: What is shown.
        state: Returns the state as JSON.
        frame: The robot's frame.
        port: TCP port on this computer; 0: any.
        scalar: Name of what the vertices of the shape have.

    Raises:
        SoftformError: If foxglove-sdk is not installed (requirements-foxglove.txt), or the port is taken.
    """

    def __init__(
        self, store: SceneStore, state: Callable[[], str], frame: str, port: int, scalar: str = "sigma"
    ) -> None:
        try:
            import foxglove
            from foxglove import channels, messages
        except ImportError as error:
            raise SoftformError(
                "foxglove_port is set, and foxglove-sdk is not installed.",
                "Install it: .venv/bin/pip install --no-deps -r requirements-foxglove.txt; or set foxglove_port to 0.",
            ) from error
        self._store, self._state_text, self._frame, self._messages = store, state, frame, messages
        self._scalar = scalar
        context = self._context = foxglove.Context()  # which channels and server do not keep
        self._clouds = {
            kind: channels.PointCloudChannel(f"/{topic}", context=context) for kind, topic in _TOPICS.items()
        }
        self._mesh = channels.SceneUpdateChannel("/surface", context=context)
        self._state = foxglove.Channel("/state", message_encoding="json", context=context)
        try:
            self._server = foxglove.start_server(name="Softform", host=HOST, port=port, context=context)
        except Exception as error:  # its own kinds of errors are of Rust
            raise SoftformError(f"Nothing can listen on port {port}: {error}.", "Set another foxglove_port.") from error
        self._told: dict[Key, int] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="foxglove", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.port)

    @property
    def is_watched(self) -> bool:
        """Whether somebody is subscribed to anything."""
        return any(channel.has_sinks() for channel in (*self._clouds.values(), self._mesh, self._state))

    def close(self) -> None:
        """End it."""
        self._ends.set()
        self._thread.join(_JOIN_SECONDS)
        self._server.stop()

    def _run(self) -> None:
        turns = 0
        while not self._ends.wait(_PERIOD_SECONDS):
            try:
                if self._state.has_sinks():
                    self._state.log(self._state_text())
                self._send(turns % round(_MESH_SECONDS / _PERIOD_SECONDS) == 0)
            except Exception:  # the page does not suffer from what this one cannot show
                logging.getLogger(__name__).exception("the scene could not be sent to Foxglove")
                self._ends.wait(1.0)
            turns += 1

    def _send(self, also_mesh: bool) -> None:
        for key, entry in self._store.entries().items():
            item, channel = entry.item, self._clouds.get(key.kind)
            if key.variant or item.kind == Kind.GONE or channel is None:
                continue
            if also_mesh and item.topology is not None and self._mesh.has_sinks():
                self._mesh.log(self._surface(item, item.topology.triangles), log_time=round(item.stamp * 1e9))
            if self._told.get(key) != entry.number and channel.has_sinks():
                self._told[key] = entry.number
                channel.log(self._cloud(item), log_time=round(item.stamp * 1e9))

    def _cloud(self, item: SceneItem) -> Any:
        made, is_float = self._messages, self._messages.PackedElementFieldNumericType.Float32
        scalar = [] if item.scalar is None else [item.scalar[:, None]]
        packed = np.hstack([item.points, *scalar]).astype("<f4")
        names = ["x", "y", "z", self._scalar][: packed.shape[1]]
        fields = [made.PackedElementField(name=name, offset=4 * at, type=is_float) for at, name in enumerate(names)]
        return made.PointCloud(
            timestamp=self._time(item),
            frame_id=self._frame,
            point_stride=4 * len(names),
            fields=fields,
            data=packed.tobytes(),
        )

    def _surface(self, item: SceneItem, triangles: NDArray[np.uint32]) -> Any:
        made = self._messages
        primitive = made.TriangleListPrimitive(
            points=[made.Point3(x=x, y=y, z=z) for x, y, z in item.points.tolist()],
            color=made.Color(r=0.3, g=0.6, b=0.9, a=0.8),
            indices=triangles.ravel().tolist(),
        )
        entity = made.SceneEntity(timestamp=self._time(item), frame_id=self._frame, id="surface", triangles=[primitive])
        return made.SceneUpdate(entities=[entity])

    def _time(self, item: SceneItem) -> Any:
        return self._messages.Timestamp.from_epoch_secs(item.stamp)
