# SPDX-License-Identifier: Apache-2.0
"""Have two arms bend the object that they hold, and see how near it truly comes.

Start the arms first (`./softform launch shaping`), then `./softform python examples/shape_object.py [NAMESPACE]`.
"""

import sys

import numpy as np

from softform_client.client import GoalFailedError
from softform_client.object_client import ObjectClient

BEND = np.array([0.0, 0.0, 0.012, -0.3, 0.0, 0.0, 0.0, 0.0, -0.012, 0.3, 0.0, 0.0])  # of both grippers: m, rad


def main(namespace: str = "/softform", iterations: int = 0) -> float:
    """Return the root mean square distance of the true object from its target, mm."""
    with ObjectClient(namespace, timeout=30.0) as arms:
        result = arms.shape(
            BEND,
            iterations=iterations,
            on_feedback=lambda told: print(f"{told.iteration:2d} {told.stage}: {1e3 * told.true_rms:.2f} mm"),
        )
    print(f"{result.ended} after {result.iterations} looks: {1e3 * result.reported_rms:.2f} mm as it believes,")
    print(f"{1e3 * result.true_rms:.2f} mm in truth; {1e3 * result.travel:.0f} mm of travel")
    return 1e3 * float(result.true_rms)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:2])
    except GoalFailedError as failure:  # says what is wrong, and what to do
        sys.exit(f"[{failure.code}] {failure}")
