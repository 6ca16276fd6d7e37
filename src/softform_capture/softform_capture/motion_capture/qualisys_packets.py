"""Packets of the Qualisys real-time protocol: cut from the stream and checked before the `qtm-rt` package reads them.

That package trusts every size: a packet of size 0, or a component of size 0, makes it loop without end. Only whole
packets whose parts fill them exactly reach it here, so that it wastes no work and nothing it reads is made up.
"""

import struct
from collections.abc import Iterator
from xml.parsers import expat

import numpy as np
from qtm_rt.packet import QRTComponentType, QRTPacket, QRTPacketType, RTComponentData, RTDataQRTPacket, RTheader

from softform_capture.motion_capture.captured_frame import MalformedPacketError
from softform_core.arrays import Array
from softform_core.units import MM_PER_M

LARGEST_PACKET = 4 << 20
"""Most bytes of a packet: a frame of a thousand markers has 16 kB, the settings of a large laboratory 100 kB."""

_DEEPEST = 32
"""Most levels of nested elements in the settings."""

_NAME = ["The_3D", "Label", "Name"]
"""Path of the elements that hold a marker's name."""

_MARKER_SIZE = {QRTComponentType.Component3d: 12, QRTComponentType.Component3dNoLabels: 16}
_MARKERS_HEADER = struct.Struct("<Ihh")
_KINDS = frozenset(kind.value for kind in QRTPacketType)


class PacketCutter:
    """Cuts a stream of bytes into packets."""

    def __init__(self) -> None:
        self._bytes = b""

    def cut(self, data: bytes) -> Iterator[bytes]:
        """Yield whole packets, headers included, that end within the new bytes.

        Raises:
            MalformedPacketError: If a header is none: where the next packet begins is then unknown.
        """
        self._bytes += data
        while len(self._bytes) >= RTheader.size:
            size, kind = RTheader.unpack_from(self._bytes)
            if not RTheader.size <= size <= LARGEST_PACKET or kind not in _KINDS:
                self._bytes = b""
                raise MalformedPacketError(f"A packet of kind {kind} with {size} bytes is none of the protocol.")
            if len(self._bytes) < size:
                return
            packet, self._bytes = self._bytes[:size], self._bytes[size:]
            yield packet


def check_packet(packet: bytes) -> None:
    """Check that the parts of a packet, with its header, fill it exactly.

    Raises:
        MalformedPacketError: If they do not.
    """
    kind = QRTPacketType(RTheader.unpack_from(packet)[1])
    content = packet[RTheader.size :]
    texts = (QRTPacketType.PacketError, QRTPacketType.PacketCommand, QRTPacketType.PacketXML)
    if kind in texts and not content.endswith(b"\0"):
        raise MalformedPacketError("A text of QTM has no end.")
    if kind == QRTPacketType.PacketEvent and not (len(content) == 1 and 1 <= content[0] <= 17):
        raise MalformedPacketError("An event of QTM is not known.")
    if kind == QRTPacketType.PacketData:
        _check_components(content)


def _check_components(content: bytes) -> None:
    if len(content) < RTDataQRTPacket.size:
        raise MalformedPacketError("A frame of QTM has no header.")
    position = RTDataQRTPacket.size
    found = set()
    for _ in range(RTDataQRTPacket.unpack_from(content)[2]):
        if position + RTComponentData.size > len(content):
            raise MalformedPacketError("A frame of QTM promises more components than it has.")
        size, number = RTComponentData.unpack_from(content, position)
        if not RTComponentData.size <= size <= len(content) - position or number in found:
            raise MalformedPacketError(f"A component of QTM of {size} bytes does not fit into its frame.")
        try:
            component = QRTComponentType(number)
        except ValueError as error:
            raise MalformedPacketError(f"A frame of QTM has a component {number}.") from error
        if component in _MARKER_SIZE:
            _check_markers(content[position + RTComponentData.size : position + size], _MARKER_SIZE[component])
        found.add(number)
        position += size
    if position != len(content):
        raise MalformedPacketError("A frame of QTM is longer than its components.")


def _check_markers(content: bytes, size: int) -> None:
    count = _MARKERS_HEADER.unpack_from(content)[0] if len(content) >= _MARKERS_HEADER.size else -1
    if len(content) != _MARKERS_HEADER.size + count * size:
        raise MalformedPacketError(f"A component of QTM does not hold the {count} markers that it promises.")


def read_labels(settings: bytes) -> list[str]:
    """Return the names of the labelled markers, in the order of the 3D component, from QTM's settings.

    Raises:
        MalformedPacketError: If the settings are no XML, declare anything, or name no markers or one twice.
    """
    names: list[str] = []
    path: list[str] = []

    def begin(name: str, _: dict[str, str]) -> None:
        path.append(name)
        if len(path) > _DEEPEST:
            raise MalformedPacketError("The settings of QTM are nested without end.")
        if path[-3:] == _NAME:
            names.append("")

    def read(text: str) -> None:
        if path[-3:] == _NAME:
            names[-1] += text

    def refuse(*_: object) -> None:  # QTM declares nothing; entities that explode or name files are thereby kept out
        raise MalformedPacketError("The settings of QTM hold declarations.")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CharacterDataHandler = begin, read
    parser.EndElementHandler = lambda _: path.pop()
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(settings, True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise MalformedPacketError(f"The settings of QTM cannot be read: {error}.") from error
    if not names or not all(names) or len(set(names)) < len(names):
        raise MalformedPacketError(
            f"QTM names its markers {names}.", "Label the markers in QTM: an AIM model with different names."
        )
    return names


def read_markers(frame: QRTPacket) -> tuple[Array, Array]:
    """Return labelled and unlabelled markers of a checked frame, (M, 3) and (U, 3) m, NaN where missing."""
    return _points(frame.get_3d_markers()), _points(frame.get_3d_markers_no_label())


def _points(component: tuple | None) -> Array:
    places = np.array([[m.x, m.y, m.z] for m in component[1]] if component else [], dtype=np.float64).reshape(-1, 3)
    places[~np.isfinite(places).all(axis=1)] = np.nan
    return places / MM_PER_M
