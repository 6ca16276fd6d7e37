"""Foxglove is served what the page shows, by its own protocol, and nothing without the extra."""

import builtins
import json
import time

import numpy as np
import pytest
from websockets.sync.client import connect

from softform_console.foxglove_bridge import FoxgloveBridge
from softform_console.scene_frames import Kind, SceneItem, Topology
from softform_console.scene_store import REST, SceneStore
from softform_core.errors import SoftformError


@pytest.fixture
def store():
    one = SceneStore()
    points = np.array([[0.0, 0.0, 0.25], [0.1, 0.0, 0.5], [0.0, 0.1, 0.75]], np.float32)
    topology = Topology(1, np.array([[0, 1, 2]], np.uint32), np.zeros((3, 2), np.float32), np.zeros(3, np.uint8), 1)
    sigma = np.array([0.001, 0.002, 0.003], np.float32)
    one.put(SceneItem(Kind.MESH, 0, 12.5, points, topology=topology), REST)
    one.put(SceneItem(Kind.MESH, 0, 13.5, points + 1.0, scalar=sigma, topology=topology))
    one.put(SceneItem(Kind.CLOUD, 0, 14.5, points[:2]))
    return one


@pytest.fixture
def bridge(store):
    pytest.importorskip("foxglove", reason="requirements-foxglove.txt is not installed")
    one = FoxgloveBridge(store, lambda: '{"robots": []}', "membrane/base_link", 0)
    yield one
    one.close()


def test_subscribers_get_clouds_surface_and_state(bridge, store):
    assert not bridge.is_watched
    with connect(f"ws://127.0.0.1:{bridge.port}", subprotocols=["foxglove.sdk.v1"]) as socket:
        offered = {}
        while len(offered) < 6:
            told = json.loads(socket.recv(timeout=5.0))
            offered |= {one["topic"]: one for one in told.get("channels", ())}
        assert offered["/predicted"]["schemaName"] == "foxglove.PointCloud"
        asked = [{"id": number, "channelId": one["id"]} for number, one in enumerate(offered.values())]
        socket.send(json.dumps({"op": "subscribe", "subscriptions": asked}))
        topics, heard = list(offered), {}
        deadline = time.monotonic() + 5.0
        while set(heard) < {"/predicted", "/captured_cloud", "/surface", "/state"}:
            assert time.monotonic() < deadline, heard.keys()
            data = socket.recv(timeout=5.0)
            if isinstance(data, bytes) and data[0] == 1:
                heard[topics[int.from_bytes(data[1:5], "little")]] = data[13:]
        assert bridge.is_watched
    assert heard["/state"] == b'{"robots": []}'
    packed = np.array([[1.0, 1.0, 1.25, 0.001], [1.1, 1.0, 1.5, 0.002], [1.0, 1.1, 1.75, 0.003]], "<f4").tobytes()
    assert packed in heard["/predicted"] and b"membrane/base_link" in heard["/predicted"]
    assert np.array([[0.0, 0.0, 0.25], [0.1, 0.0, 0.5]], "<f4").tobytes() in heard["/captured_cloud"]
    assert "/target" not in heard and "/captured_markers" not in heard
    deadline = time.monotonic() + 5.0
    while bridge.is_watched:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_port_that_is_taken_is_told(bridge, store):
    with pytest.raises(SoftformError, match="foxglove_port"):
        FoxgloveBridge(store, lambda: "{}", "base", bridge.port)


def test_without_the_extra_it_is_said_what_to_install(store, monkeypatch):
    found = builtins.__import__

    def refuse(name, *args, **options):
        if name.partition(".")[0] == "foxglove":
            raise ImportError(name)
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(SoftformError, match=r"requirements-foxglove\.txt"):
        FoxgloveBridge(store, lambda: "{}", "base", 0)
