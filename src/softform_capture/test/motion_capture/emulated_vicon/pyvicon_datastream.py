"""Stands in for the client of Vicon's DataStream, with the interface of pyvicon-datastream 0.2.4.

The server's name says how it behaves: `good`, `absent`, `gone` after 20 frames, `hangs` or `dies` after 20 frames.
"""

import os
import time
from enum import Enum

import numpy as np

MARKERS = {"base": ["base_1", "base_2", "base_3"], "sheet": ["m01", "m02", "m03", "m04", "m05"]}
PERIOD = 0.01
LATENCY = 0.015
HIDDEN = "m05"


def place(subject, marker, number):
    """Where a marker is in a frame, m."""
    return np.array([0.1 * MARKERS[subject].index(marker), 0.5 if subject == "base" else 0.0, 0.01 * number])


class Result(Enum):
    Unknown = 0
    NotImplemented = 1
    Success = 2
    InvalidHostName = 3
    ClientConnectionFailed = 6
    NotConnected = 9
    NoFrame = 10


class StreamMode(Enum):
    ClientPull = 0
    ClientPullPreFetch = 1
    ServerPush = 2


class PyViconDatastream:
    def __init__(self):
        self._server, self._number, self._enabled = None, 0, set()

    def connect(self, ip):
        self._server = ip.partition(":")[0]
        return Result.ClientConnectionFailed if self._server == "absent" else Result.Success

    def enable_marker_data(self):
        self._enabled.add("markers")
        return Result.Success

    def enable_unlabeled_marker_data(self):
        self._enabled.add("unlabelled")
        return Result.Success

    def set_buffer_size(self, size):
        assert size == 1

    def set_stream_mode(self, stream_mode):
        assert stream_mode is StreamMode.ServerPush
        return Result.Success

    def get_frame(self):
        if self._number >= 20:
            if self._server == "gone":
                return Result.NotConnected
            if self._server == "hangs":
                time.sleep(3600)
            if self._server == "dies":
                os.abort()
        time.sleep(PERIOD)
        self._number += 1
        return Result.NoFrame if self._number == 3 else Result.Success

    def get_frame_number(self):
        return self._number

    def get_latency_total(self):
        return LATENCY

    def get_subject_count(self):
        return len(MARKERS)

    def get_subject_name(self, index):
        return list(MARKERS)[index]

    def _names(self, subject):
        assert "markers" in self._enabled
        return MARKERS[subject]

    def get_marker_count(self, name):
        return len(self._names(name))

    def get_marker_name(self, name, index):
        return self._names(name)[index]

    def get_marker_global_translation(self, subject_name, marker_name):
        return None if marker_name == HIDDEN else 1000.0 * place(subject_name, marker_name, self._number)

    def get_unlabeled_marker_count(self):
        return 1

    def get_unlabeled_marker_global_translation(self, index):
        return tuple(1000.0 * np.array([0.5, 0.5, 0.5]))
