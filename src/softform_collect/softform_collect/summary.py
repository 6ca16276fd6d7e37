"""What a data set holds after collecting: for people and as figures."""

import numpy as np

from softform_collect.data_set import Store
from softform_core.frames.marker_store import MarkerStore
from softform_core.units import MM_PER_M


def summary_figures(store: Store) -> dict[str, object]:
    """Figures of a data set; lengths in mm, times in s."""
    coverage = store.coverage[store.captured]
    moments = np.sort(store.captured_at[np.isfinite(store.captured_at)])
    drift = store.references.drift() if isinstance(store, MarkerStore) else np.empty((0, 0))
    return {
        "path": str(store.path),
        "frames": len(store),
        "captured": len(store.captured),
        "rejected": len(store.rejections),
        "pending": len(store.pending),
        "coverage_mean": round(float(coverage.mean()), 4) if len(coverage) else None,
        "coverage_min": round(float(coverage.min()), 4) if len(coverage) else None,
        "seconds_a_frame": round(float(np.median(np.diff(moments))), 2) if len(moments) > 1 else None,
        "sessions": len(store.sessions),
        "references": len(drift),
        "drift_mean_mm": round(float(MM_PER_M * np.nanmean(drift[-1])), 3) if len(drift) else None,
        "drift_max_mm": round(float(MM_PER_M * np.nanmax(drift)), 3) if len(drift) else None,
    }


def summary_lines(store: Store) -> list[str]:
    """The same as text, with the reason of every rejected frame."""
    figures = summary_figures(store)
    line = f"{store.path}: {figures['captured']} of {figures['frames']} frames captured"
    if figures["pending"]:
        line += f", {figures['pending']} to go"
    if figures["coverage_mean"] is not None:
        seen = "the markers" if isinstance(store, MarkerStore) else "the robot"
        line += f", {figures['coverage_mean']:.0%} of {seen} seen on average, {figures['coverage_min']:.0%} at least"
    lines = [f"{line}."]
    if figures["seconds_a_frame"] is not None:
        lines.append(f"  {figures['seconds_a_frame']} s a frame, in {figures['sessions']} sessions")
    if figures["references"]:
        lines.append(
            f"  drift in {figures['references']} captures of the reference pose: {figures['drift_mean_mm']:.1f} mm on "
            f"average in the last one, {figures['drift_max_mm']:.1f} mm at most"
        )
    lines += [f"  frame {number} is rejected: {reason}" for number, reason in sorted(store.rejections.items())]
    return lines
