"""The process that reads a Vicon DataStream; its arguments are the server and the descriptor of a pipe for frames.

Ends when the pipe's reader closes it, and with the process that started it, whatever ended that.
"""

import ctypes
import importlib
import signal
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from softform_capture.motion_capture.captured_frame import CapturedFrame, SourceLostError, plain_labels
from softform_capture.motion_capture.device_clock import epoch_nanoseconds
from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.units import MM_PER_M

CLIENT = "pyvicon_datastream"
CONNECTED = "connected"

_PR_SET_PDEATHSIG = 1
_NO_FRAME_PAUSE = 0.002  # s


def connected_client(server: str) -> Any:
    """Return the client, connected, with labelled and unlabelled markers switched on, no frame waits behind another.

    Raises:
        SoftformError: If the server does not answer.
    """
    vicon = importlib.import_module(CLIENT)
    client = vicon.PyViconDatastream()
    result = client.connect(server)
    if result != vicon.Result.Success:
        raise SoftformError(f"The server does not answer ({result.name}).", "Check address, port and firewall.")
    client.enable_marker_data()
    client.enable_unlabeled_marker_data()
    client.set_buffer_size(1)
    client.set_stream_mode(vicon.StreamMode.ServerPush)
    return client


def read_frame(client: Any) -> tuple[CapturedFrame, float] | None:
    """Return the next frame, as captured when it arrived, and the time from capture to arrival, s, by both sides.

    None if there is none yet.

    Raises:
        SoftformError: If the connection is gone.
    """
    result = client.get_frame()
    arrival = time.monotonic()
    if result.name == "NoFrame":
        return None
    if result.name != "Success":
        raise SoftformError(f"The connection is gone ({result.name}).", "It is opened again.")
    subjects = [client.get_subject_name(index) for index in range(client.get_subject_count() or 0)]
    listed = [
        (subject, client.get_marker_name(subject, index))
        for subject in subjects
        for index in range(client.get_marker_count(subject) or 0)
    ]
    qualified = [(subject, marker) for subject, marker in listed if marker]
    places = [client.get_marker_global_translation(subject, marker) for subject, marker in qualified]
    loose = [
        client.get_unlabeled_marker_global_translation(index)
        for index in range(client.get_unlabeled_marker_count() or 0)
    ]
    positions = _metres([(np.nan,) * 3 if place is None else place for place in places])
    unlabelled = _metres([place for place in loose if place is not None])
    number, arrived_at = client.get_frame_number(), epoch_nanoseconds(arrival)
    frame = CapturedFrame(number, arrived_at, plain_labels(qualified), positions, unlabelled)
    return frame, float(client.get_latency_total())


def _metres(places: list[Any]) -> Array:
    return np.array(places, dtype=np.float64).reshape(-1, 3) / MM_PER_M


def send_frames(server: str, pipe: Connection) -> None:
    """Send `CONNECTED`, then frames, each once, until the pipe is closed; or what went wrong."""
    try:
        client = connected_client(server)
        pipe.send(CONNECTED)
        last = None
        while True:
            read = read_frame(client)
            if read is None or read[0].number == last:
                time.sleep(_NO_FRAME_PAUSE)
                continue
            pipe.send(read)
            last = read[0].number
    except SoftformError as error:
        pipe.send(SourceLostError(str(error)))


def main() -> None:
    """Read until the pipe is closed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's; the node ends its reader itself
    server, descriptor = sys.argv[1], int(sys.argv[2])
    try:
        send_frames(server, Connection(descriptor, readable=False))
    except BrokenPipeError:
        sys.exit(0)
