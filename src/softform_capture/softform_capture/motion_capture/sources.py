"""Supported motion-capture systems and their readers; the parameters choose only here."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from softform_capture.motion_capture.captured_frame import MotionCaptureSource
from softform_core.errors import SoftformError

TOPICS = ("marker_frame", "mocap4r2", "point_cloud")
"""Systems whose frames come by a ROS topic: see `ros_frames`."""

NETWORK = ("vicon", "natnet", "qualisys")
"""Systems that the node connects to itself."""

_CLIENTS = {"natnet": "natnet==0.3.0", "qualisys": "qtm-rt==3.1.0"}
"""Packages that read the protocols. Vicon's is looked for by its source, as it is optional."""


def network_source(values: Mapping[str, Any]) -> MotionCaptureSource:
    """Return the system that the node's parameters ask for; nothing is opened yet.

    Raises:
        SoftformError: If `server` is empty, or the package that reads its protocol is not installed.
    """
    system, server, port = values["system"], values["server"], values["port"]
    if not server:
        raise SoftformError(f"No server for {system} is given.", "Set `server` to the address of its computer.")
    try:
        module = import_module(f"softform_capture.motion_capture.{system}_source")
    except ImportError as error:
        raise SoftformError(
            f"The client of {system} cannot be loaded: {error}.",
            f"Install it: .venv/bin/pip install {_CLIENTS.get(system, system)}.",
        ) from error
    if system == "vicon":
        return module.ViconSource(f"{server}:{port}" if port else server)
    if system == "qualisys":
        return module.QualisysSource(server, **({"port": port} if port else {}))
    given = {name: values[name] for name in ("local_address", "data_port", "multicast_group")}
    return module.NatNetSource(server, **given, **({"command_port": port} if port else {}))
