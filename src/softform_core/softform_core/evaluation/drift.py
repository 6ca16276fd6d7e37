"""Whether a robot still is what its sim-to-real model was learned from."""

from collections.abc import Sequence

import numpy as np

_DRIFTED = 1.5
"""Times its error on its own held-out frames, above which a model does not fit the robot any more."""


def drift(errors_mm: Sequence[float], promised_mm: float) -> str:
    """What to say of errors of shapes captured after a model was made, beside its own; empty if they are as good."""
    error = float(np.median(errors_mm))
    if error <= _DRIFTED * promised_mm:
        return ""
    return (
        f"The robot has drifted from its model: {error:.2f} mm in the mean, {promised_mm:.2f} mm when it was made. "
        "Correct the model by five scans: softform refresh"
    )
