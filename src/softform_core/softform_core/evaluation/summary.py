"""The figures of an evaluation, for `metrics.json` and the tables of the report; millimetres."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from softform_core.evaluation.comparison import Comparison
from softform_core.evaluation.errors import ErrorSummary, summarise_errors
from softform_core.evaluation.evaluate import JudgedFrame

Figures = dict[str, object]

_DECIMALS = 4


@dataclass(frozen=True)
class Summary:
    """Comparisons of one or more frames, all points of all frames together.

    Attributes:
        captured: Distances of captured points to the predicted surface, or of markers to their points on it.
        normal_mean_mm: Mean part along the normal; less than the mean where markers slide along the surface.
        frame_max_mm: Largest distance of a frame, in the mean over the frames.
        surface_mean_mm: Mean distance of predicted points to the captured surface where that is seen; None for markers.
        normal_error: Mean of Eq. 21 there.
        chamfer_mm2: Eq. 19, in the mean over the frames.
        hausdorff_mm: Eq. 18, in the mean over the frames.
        sigma_mm: Mean predicted standard deviation at the captured points; None if the model does not tell.
        noise_mm: Standard deviation of the measurement, in the mean over the frames; None for markers.
        within_one_sigma: Share of captured points within one standard deviation, noise included.
        within_two_sigma: Share within two.
        folded: Cells of the grids at which the normal flips.
    """

    captured: ErrorSummary
    normal_mean_mm: float
    frame_max_mm: float
    surface_mean_mm: float | None
    normal_error: float | None
    chamfer_mm2: float | None
    hausdorff_mm: float | None
    sigma_mm: float | None
    noise_mm: float | None
    within_one_sigma: float | None
    within_two_sigma: float | None
    folded: int

    def figures(self) -> Figures:
        """Return the figures as JSON holds them."""
        values = asdict(self.captured) | {k: v for k, v in asdict(self).items() if k != "captured"}
        return {name: round(value, _DECIMALS) if isinstance(value, float) else value for name, value in values.items()}


def summarise(comparisons: Sequence[Comparison]) -> Summary:
    """Return figures of one or more frames.

    Raises:
        SoftformError: If there is nothing to sum up.
    """
    errors = np.concatenate([one.distances for one in comparisons])
    on_surface = np.concatenate([one.error_map[one.seen] for one in comparisons])
    turned = np.concatenate([one.normal_errors[one.seen] for one in comparisons])
    sigmas = [one.sigma for one in comparisons if one.sigma is not None]
    return Summary(
        captured=summarise_errors(errors),
        normal_mean_mm=float(np.mean(np.concatenate([np.abs(one.along_normal) for one in comparisons]))),
        frame_max_mm=float(np.mean([one.distances.max() for one in comparisons])),
        surface_mean_mm=float(on_surface.mean()) if len(on_surface) else None,
        normal_error=float(turned.mean()) if len(turned) else None,
        chamfer_mm2=_mean([one.chamfer_mm2 for one in comparisons]),
        hausdorff_mm=_mean([one.hausdorff_mm for one in comparisons]),
        sigma_mm=float(np.concatenate(sigmas).mean()) if sigmas else None,
        noise_mm=_mean([one.noise_mm for one in comparisons]),
        within_one_sigma=share_within(comparisons, 1.0),
        within_two_sigma=share_within(comparisons, 2.0),
        folded=sum(one.folded for one in comparisons),
    )


def share_within(comparisons: Sequence[Comparison], deviations: float) -> float | None:
    """Return the share of captured points within so many standard deviations and noise; None if none is predicted."""
    shares = [(one.within(deviations), len(one.distances)) for one in comparisons]
    known = [(share, count) for share, count in shares if share is not None]
    return None if not known else float(sum(s * n for s, n in known) / sum(n for _, n in known))


def before_and_after(frames: Sequence[JudgedFrame]) -> tuple[Summary, Summary | None]:
    """Return figures of the simulation alone and of sim-to-real, None without a model.

    Raises:
        SoftformError: If there is no frame.
    """
    corrected = [frame.after for frame in frames if frame.after is not None]
    return summarise([frame.before for frame in frames]), summarise(corrected) if corrected else None


def overall_figures(frames: Sequence[JudgedFrame]) -> Figures:
    """Return figures of all frames together, before and after, and the cuts of mean and maximum as shares.

    Raises:
        SoftformError: If there is no frame.
    """
    before, after = before_and_after(frames)
    figures: Figures = {
        "frames": len(frames),
        "missing": round(float(np.mean([frame.missing for frame in frames])), _DECIMALS),
        "before": before.figures(),
        "after": None,
        "mean_reduction": None,
        "max_reduction": None,
    }
    if after is not None:
        figures["after"] = after.figures()
        figures["mean_reduction"] = round(1.0 - after.captured.mean_mm / before.captured.mean_mm, _DECIMALS)
        figures["max_reduction"] = round(1.0 - after.frame_max_mm / before.frame_max_mm, _DECIMALS)
    return figures


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
