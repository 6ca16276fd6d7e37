"""What a recording's counts mean: for diagnostics, and for the summary at its end."""

from softform_recording.topic_recorder import RecordingCounts, TopicRecorder
from softform_ros.diagnostics import ERROR, OK, WARN, Health


def recording_health(recorder: TopicRecorder) -> Health:
    """Health of a recorder."""
    counts = recorder.counts
    values = {
        "bag": recorder.folders[-1],
        "messages": counts.written,
        "received": counts.received,
        "dropped": counts.dropped,
        "lost before arrival": counts.lost,
        "waiting for the disk, bytes": counts.waiting_bytes,
        "awaited": ", ".join(sorted(recorder.awaited)),
        "rejected": ", ".join(sorted(recorder.rejected)),
    }
    missing = shortcomings(counts)
    if recorder.rejected:
        rejected = "; ".join(
            f"{topic} is not recorded: {reason}" for topic, reason in sorted(recorder.rejected.items())
        )
        return Health(ERROR, f"{rejected}; {missing}" if missing else rejected, values)
    level = ERROR if counts.failure else WARN if missing else OK
    return Health(level, missing or "recording", values)


def shortcomings(counts: RecordingCounts) -> str:
    """What is missing of a recording; empty if nothing is."""
    dropped = f"{counts.dropped} messages were dropped: the disk does not keep up" if counts.dropped else ""
    lost = f"{counts.lost} messages did not arrive: the machine is overloaded" if counts.lost else ""
    return "; ".join(part for part in (counts.failure, "" if counts.failure else dropped, lost) if part)
