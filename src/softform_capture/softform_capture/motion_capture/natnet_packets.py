"""Packets of OptiTrack's NatNet protocol: the `natnet` package reads their fields, here their sizes are checked.

That package trusts every count in a packet: a count of 2^32 makes it build a string of 4 GB, or read empty names
without end. The buffer below rejects both, so that no packet takes more time or memory than its own length.
"""

import struct
from dataclasses import dataclass, field

import numpy as np
from natnet import DataDescriptions, DataFrame, NatNetError, ServerInfo, Version
from natnet.data_frame import AssetMarkerData, LabeledMarker
from natnet.packet_buffer import PacketBuffer

from softform_capture.motion_capture.captured_frame import MalformedPacketError, plain_labels
from softform_core.arrays import Array
from softform_core.errors import SoftformError

CONNECT, SERVER_INFO, REQUEST_DESCRIPTIONS, DESCRIPTIONS, FRAME, KEEP_ALIVE = 0, 1, 4, 5, 7, 10
"""Kinds of messages."""

_OCCLUDED, _MODEL_FILLED, _UNLABELLED = 0x01, 0x04, 0x10
"""Bits of a labelled marker: it was not seen; its place was filled in from the model; it has no label."""

_NEWEST = Version(4, 2)
_OLDEST = Version(3, 0)  # the first with identified markers, times of exposure and the clock's frequency


class _CheckedBuffer(PacketBuffer):
    """Never reads past the packet's end."""

    def read_string(self, max_length: int | None = None, static_length: bool = False) -> str:
        left = bytes(self.data[self.pointer :][:max_length])
        if b"\0" not in left or (static_length and max_length is not None and len(left) < max_length):
            raise MalformedPacketError("A name of the packet has no end.")
        return str(super().read_string(max_length, static_length))

    def read_float32_array(self, count: int) -> tuple[float, ...]:
        if 4 * count > len(self.data) - self.pointer:
            raise MalformedPacketError(f"The packet promises {count} numbers more than it holds.")
        return tuple(super().read_float32_array(count))


@dataclass(frozen=True)
class Server:
    """Description that a NatNet server gives of itself: protocol version, clock ticks per second, and destination.

    Attributes:
        group: Address of the multicast group that it says it sends to; empty if it names none.
    """

    version: Version
    ticks: float
    group: str = ""


@dataclass(frozen=True)
class Labels:
    """Names of the markers of all assets.

    Attributes:
        names: Names of all markers, in the order of the descriptions.
        row: Asset and member -> index into `names`.
    """

    names: list[str] = field(default_factory=list)
    row: dict[tuple[int, int], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Frame:
    """One frame of data.

    Attributes:
        number: Frame number.
        exposed, transmitted: When, s of the server's clock.
        positions: (number of labels, 3) m, NaN where missing.
        unlabelled: (U, 3) m.
        strangers: Whether it holds a marker without a known label: the labels have to be requested again.
    """

    number: int
    exposed: float
    transmitted: float
    positions: Array
    unlabelled: Array
    strangers: bool


def request(kind: int, text: str = "") -> bytes:
    """Return a message to the server."""
    payload = text.encode() + b"\0"
    return struct.pack("<HH", kind, len(payload)) + payload


def open_message(data: bytes) -> tuple[int, PacketBuffer]:
    """Return the kind and content of a message.

    Raises:
        MalformedPacketError: If it is cut off.
    """
    if len(data) < 4:
        raise MalformedPacketError("The packet has no header.")
    kind, size = struct.unpack_from("<HH", data)
    if size > len(data) - 4:
        raise MalformedPacketError(f"The packet promises {size} bytes and has {len(data) - 4}.")
    buffer = _CheckedBuffer(data[: 4 + size])
    buffer.pointer = 4
    return kind, buffer


def read_server(buffer: PacketBuffer) -> Server:
    """Read the server's description of itself.

    Raises:
        MalformedPacketError: If it is malformed.
        SoftformError: If the protocol is of a version that is not read here.
    """
    try:
        version = ServerInfo.read_from_buffer(buffer, None).nat_net_protocol_version.truncate(2)
        if not _OLDEST <= version <= _NEWEST:
            raise SoftformError(
                f"Motive speaks NatNet {version}, and versions {_OLDEST} to {_NEWEST} are read.",
                "Install a Motive that speaks one of these, or let a ROS driver publish its markers (system mocap4r2).",
            )
        ticks, _, multicast, *address = struct.unpack_from("<QH?4B", buffer.data, buffer.pointer)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedPacketError(f"The server's answer cannot be read: {error}.") from error
    if not 1e3 <= ticks <= 1e12:
        raise MalformedPacketError(f"The server's clock has {ticks:g} ticks a second.")
    group = ".".join(map(str, address)) if multicast else ""
    if multicast and not 224 <= address[0] <= 239:
        raise MalformedPacketError(f"The server says that it sends to the multicast group {group}, which is none.")
    return Server(version, float(ticks), group)


def read_labels(buffer: PacketBuffer, version: Version) -> Labels:
    """Return the names of the markers of all rigid bodies and trained marker sets.

    Raises:
        MalformedPacketError: If the descriptions cannot be read.
    """
    try:
        described = DataDescriptions.read_from_buffer(buffer, version)
    except (struct.error, UnicodeDecodeError, NatNetError) as error:
        raise MalformedPacketError(f"The descriptions cannot be read: {error}.") from error
    of_sets = {group.name: group.marker_names for group in described.marker_sets}
    members: dict[tuple[int, int], tuple[str, str]] = {}
    for body in described.rigid_bodies:
        fallback = of_sets.get(body.name, ())  # before version 4 only the set of the body's name has the names
        for index, marker in enumerate(body.markers):
            name = marker.name or (fallback[index] if index < len(fallback) else f"{index + 1}")
            members[body.id_num & 0xFFFF, index + 1] = (body.name, name)
    for asset in described.assets:
        for marker in asset.marker_descriptions:
            members[asset.asset_id & 0xFFFF, marker.marker_id & 0xFFFF] = (asset.name, marker.name)
    names = plain_labels(list(members.values()))
    if len(set(names)) < len(names):
        raise MalformedPacketError("Two markers of one asset have the same name.", "Rename one in Motive.")
    return Labels(names, {member: row for row, member in enumerate(members)})


def read_frame(buffer: PacketBuffer, server: Server, labels: Labels) -> Frame:
    """Return one frame, its markers in the order of the labels.

    Raises:
        MalformedPacketError: If it cannot be read.
    """
    try:
        content = DataFrame.read_from_buffer(buffer, server.version)
    except (struct.error, UnicodeDecodeError) as error:
        raise MalformedPacketError(f"The frame cannot be read: {error}.") from error
    positions, strangers = np.full((len(labels.names), 3), np.nan), False
    unlabelled = []
    in_assets = [marker for asset in content.assets or () for marker in asset.markers]
    for marker in [*in_assets, *content.labeled_markers]:
        identity, bits = _identity_and_bits(marker)
        if bits & _UNLABELLED:
            unlabelled.append(marker.pos)
            continue
        row = labels.row.get((identity >> 16, identity & 0xFFFF))
        strangers |= row is None
        if row is not None and not bits & (_OCCLUDED | _MODEL_FILLED):
            positions[row] = marker.pos
    positions[~np.isfinite(positions).all(axis=1)] = np.nan
    loose = np.array(unlabelled or content.unlabeled_marker_pos, dtype=np.float64).reshape(-1, 3)
    exposed, transmitted = (
        stamp / server.ticks for stamp in (content.suffix.stamp_camera_mid_exposure, content.suffix.stamp_transmit)
    )
    if not 0.0 <= transmitted - exposed < 10.0:
        raise MalformedPacketError("The frame was sent before it was exposed, or long after.")
    seen = np.isfinite(loose).all(axis=1)
    return Frame(content.prefix.frame_number, exposed, transmitted, positions, loose[seen], strangers)


def _identity_and_bits(marker: LabeledMarker | AssetMarkerData) -> tuple[int, int]:
    if isinstance(marker, AssetMarkerData):
        return marker.marker_id, marker.marker_params
    return marker.id_num, marker.param
