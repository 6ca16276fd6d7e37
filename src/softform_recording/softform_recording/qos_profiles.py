"""Quality of service between rclpy and bags, and the profile that suits all publishers of a topic."""

from collections.abc import Sequence

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime

from softform_ros import qos

READER_DEPTH = 1000
"""Messages that may wait for a delayed recorder: ten seconds of the fastest topic."""

_LATCHED_DEPTH, _DEPTH = 1, 10


def as_offered(profile: QoSProfile) -> Qos:
    """Return a publisher's profile as a bag keeps it; the middleware does not tell its history and depth."""

    def seconds(duration: object) -> QosTime:
        return QosTime(*divmod(int(getattr(duration, "nanoseconds", 0)), 1_000_000_000))

    return Qos(
        QosHistory[profile.history.name],
        profile.depth,
        QosReliability[profile.reliability.name],
        QosDurability[profile.durability.name],
        seconds(profile.deadline),
        seconds(profile.lifespan),
        QosLiveliness[profile.liveliness.name],
        seconds(profile.liveliness_lease_duration),
        profile.avoid_ros_namespace_conventions,
    )


def reader_of(offered: Sequence[QoSProfile]) -> QoSProfile:
    """Return the strictest profile that every publisher of a topic can serve."""
    return qos.profile(
        READER_DEPTH,
        all(one.reliability == ReliabilityPolicy.RELIABLE for one in offered),
        all(one.durability == DurabilityPolicy.TRANSIENT_LOCAL for one in offered),
    )


def writer_of(offered: Sequence[Qos]) -> QoSProfile:
    """Return the QoS of a replay: the strictest of the recorded profiles, so that all recorded subscriptions match.

    Without any (another program's bag) it is what publishers offer by default.
    """
    latched = any(one.durability is QosDurability.TRANSIENT_LOCAL for one in offered)
    depths = [one.depth for one in offered if one.history is QosHistory.KEEP_LAST and one.depth > 0]
    return qos.profile(
        max(depths, default=_LATCHED_DEPTH if latched else _DEPTH),
        not offered or any(one.reliability is QosReliability.RELIABLE for one in offered),
        latched,
    )
