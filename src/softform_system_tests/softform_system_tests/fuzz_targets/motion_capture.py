"""Entry points for fuzzers: any bytes are rejected in one way or read as what they are, soon and without a crash.

Checked beside the absence of crashes: whatever is accepted is consistent, so that no wrong frame gets past the parsers.
"""

import struct
import zlib
from base64 import b85decode

import numpy as np
from natnet import Version
from qtm_rt import QRTPacket
from qtm_rt.packet import QRTPacketType, RTheader

from softform_capture.motion_capture import natnet_packets, qualisys_packets
from softform_capture.motion_capture.captured_frame import MalformedPacketError
from softform_core.arrays import Array
from softform_core.errors import SoftformError

__all__ = ["SEEDS", "TARGETS", "fuzz_natnet", "fuzz_qualisys_settings", "fuzz_qualisys_stream"]

_SERVERS = [natnet_packets.Server(Version(*numbers), 1e7) for numbers in ((3, 0), (4, 0), (4, 1))]
_LABELS = natnet_packets.Labels(["base_1", "m01", "m02"], {(1, 1): 0, (2, 1): 1, (2, 2): 2})


def _check_points(points: Array) -> None:
    assert points.ndim == 2 and points.shape[1] == 3
    gone = np.isnan(points).any(axis=1)
    assert np.isfinite(points[~gone]).all() and np.isnan(points[gone]).all()


def fuzz_natnet(data: bytes) -> None:
    """One datagram; its first byte chooses the version of the protocol."""
    server = _SERVERS[data[0] % len(_SERVERS)] if data else _SERVERS[0]
    try:
        kind, buffer = natnet_packets.open_message(data[1:])
        if kind == natnet_packets.SERVER_INFO:
            found = natnet_packets.read_server(buffer)
            assert found.ticks > 0.0
        elif kind == natnet_packets.DESCRIPTIONS:
            labels = natnet_packets.read_labels(buffer, server.version)
            assert sorted(labels.row.values()) == list(range(len(labels.names))) == sorted(set(labels.row.values()))
        elif kind == natnet_packets.FRAME:
            frame = natnet_packets.read_frame(buffer, server, _LABELS)
            assert frame.positions.shape == (len(_LABELS.names), 3)
            assert frame.transmitted >= frame.exposed
            _check_points(frame.positions)
            assert np.isfinite(frame.unlabelled).all()
            assert 12 * len(frame.unlabelled) <= len(data)
    except (MalformedPacketError, SoftformError):  # of another version
        return


def fuzz_qualisys_stream(data: bytes) -> None:
    """A stretch of the stream from QTM, in two deliveries; its first byte says where the cut is."""
    cutter = qualisys_packets.PacketCutter()
    cut = 1 + (data[0] if data else 0)
    taken = 0
    try:
        for part in (data[1:cut], data[cut:]):
            for packet in cutter.cut(part):
                taken += len(packet)
                _read_qualisys_packet(packet)
    except MalformedPacketError:
        return
    assert taken < len(data) or not data


def _read_qualisys_packet(packet: bytes) -> None:
    assert struct.unpack_from("<I", packet)[0] == len(packet)
    try:
        qualisys_packets.check_packet(packet)
    except MalformedPacketError:
        return
    kind = QRTPacketType(RTheader.unpack_from(packet)[1])
    if kind == QRTPacketType.PacketData:
        for points in qualisys_packets.read_markers(QRTPacket(packet[RTheader.size :])):
            _check_points(points)
            assert 12 * len(points) <= len(packet)
    elif kind == QRTPacketType.PacketXML:
        fuzz_qualisys_settings(packet[RTheader.size : -1])


def fuzz_qualisys_settings(data: bytes) -> None:
    """The settings that QTM sends as XML."""
    try:
        names = qualisys_packets.read_labels(data)
    except MalformedPacketError:
        return
    assert names and all(names) and len(set(names)) == len(names)


TARGETS = (fuzz_natnet, fuzz_qualisys_stream, fuzz_qualisys_settings)


_RECORDED = {
    "fuzz_natnet": [
        "c-muPWDsZc%`eF;OJx|bfSHkjfdz;grp*BJpR<A~0ONrLGX",
        "c-"
        "muPW%$6z!T<rPK%A6VoXWrgWyBjoC?g1E453WGiuHiFI3qQ+gn<*t$~7<qVk00n24WK+HU(lcAT|eL3m~>+U<9hGgjoUN{09OCB*"
        "4NzIl$*^Hjn~Fn6sIH944qPm=_q)Oyjz)Y{LNd7!wW|V+Lj%GA0=QfytOMu;P$0gSZikj5z~44jBsu4jeL;V1HrC008&gIOz",
        "c-muPXV}BU&cMLH2*gW(I58)Offq<y-|gT3)HP_I`hzw*>6E<v)BW@Jx-"
        "4e5Pj|`Oe=8`$E@;g`yTgV3`!8(&Zd+Ay*LKOpuKhEQUf3J-eX^bKzs~)u9+d3aeYe!ES*vq@e(z-4OJ|(zeE&A@zpLD|_fgL-yM"
        "woz_Xp=(u*vzp$WAA$X}^~KBio<V9d>U5tM<2YoZC~R^w93~s*3$b{c3IhNuID<$y~m_I77m&Q*gZ<$gMm;eD=&4+p}kU>}JiJ2^"
        "Ld>`U5v;uovHc(E?Kq9}wp-"
        "f^;*Y_?+vyvJDplNDmWG200uMGR#03<WND#umEL{!w4k9%K&i!69aOHA=|^mfE<3v_AoIZhbFQ;Obp0ji;!Uj${>d{LWT_}gB<P%"
        "8Fruyax5TZIDj(9ae|QH1j-=C5JJWmEuKI!0t^I!*JOu=*XQpu0htf3UI5b$2QGqXQ~&_;?(FF",
        "c-"
        "muNWhi1~VSs?7#Nt#27APa$5JDM2C}Rj^0#;a@k(ye<zzJmK8W;kx5fB>#u?Y~H0<jqon**^05L+@Z!i)wn{sRF65@2DV95BM2#D"
        "v8LPKLn;0B#c?5C",
        "c-muNXUJk=XJBAp1meV;90pz>ZGE?Y|5MkXed-U|?4(oj_D}cE-|MoN-"
        "9FtVbN{WN2)m#)2kj0Q_V2&2{kv^d$z9te7rXY)JbGbo(D%u9!v8w=uX<3jXZPJwyJoG<{rSC<Z7-"
        "d1w)6ely#KCp)80otyX+3$Zr&f9bHOI(`yxA?u%`W5`j2dXR(IIF39Q=R%5iQ_k<vrE)2k}>AN8xX{U>?CZY6X1{^AS?yH3INb_`"
        "Irf-r8-"
        "U@yM?q6I_^FIY7rim$k?E8B1}fYdMnWsv=dkYNVOAp000!vd5+_CH95mjPlU69aN+Alt*lfE+f+_AoIZhZM3sObp23hLB+e${>d#"
        "LWT_}gB+#^8FruyatI@2IDj(9;f;{t1j-<XK0*d-uzO8*Xn1}8J`<4n;OYf1?Qq~Cn1%oV2)f)A",
    ],
    "fuzz_qualisys_stream": [
        "c-"
        "m9QV`gArVqjpf2@LU#4@fLZ%uOvxEh>%=OD&2w)H5=*vkA#ajW>3&vvI7*EDkLwPb^9)w$qNX(MRUn_#`H!<`ml*8r$eYnGhj68$"
        "Y0lc1elFsquz3`e2Stkh_y}eolUootdeTg@KJeoDbEEMXwPBdW|X2YeJshTmwULH5!qt(U@F~Wc$&ST#aVrYBVQTqXoGdEs58t56"
        "da~xbhMM01xaFb^",
        "c-"
        "muq!oa}548#k5PVod%4D3M61jK8Am=TD186beCuIGqjgzw>J+nSvZoy|D1b93gQf>IWjGiQ>IymSb5_E6gEEFs!+r19lPrvuJ6oO"
        "VrUKl1&-=|gSx6P)D_wH--Q&Og{GRp8wGx%G&g!~`ccGkfRQrwvDV^y&^x)!pVi>qx_qlbxp>7pTs6_MK37g#XbUCqd6vXU39}BS"
        "9u74=%ZV+xgVBq9bqO%AJxj4?9n`EIh(+O~hH@`zmJzsGAuXVBmxk1A~V%1H&|DBOs3xh}l5?1OT(ARQ3",
        "c-mv&W?*1o1Y-Ye1^@z20LK",
    ],
    "fuzz_qualisys_settings": [
        "c-"
        "p1YO$)*>3<lsIB$&0eb3zFC0bW#8rUx&j!+^rZq!sk%D>}u4f@HV6fhUl|i>rL@mOl83&m5xLa&W4vEn$9OXC{Qh>oIOl7a#VKIy"
        ";2Vj5A+w8A%z0W_+#)7x#-)_{dHnJOZw#qj6o<fl{lp1mT?<{Ke`P*0iuanXM8fg<1-"
        "Y6pDYeQkY6%UkWoR9Q+UA)fD*Er5gmJ65{",
    ],
}

SEEDS = {target: [zlib.decompress(b85decode(packet)) for packet in packets] for target, packets in _RECORDED.items()}
"""Name of the target -> inputs that it accepts."""
