"""A small block between two grips, and poses that bend it."""

import numpy as np

LENGTH = 0.2
BLOCK = {
    "name": "block",
    "title": "Block",
    "source": "test",
    "body": {
        "kind": "freeform",
        "elements": "corotational",
        "shape": [{"part": "box", "begin": [-0.05, -0.025, 0.0], "end": [0.05, 0.025, LENGTH]}],
        "support": "none",
        "loads": [
            {"load": "grip", "name": "left", "begin": [-0.1, -0.1, -0.01], "end": [0.1, 0.1, 0.02]},
            {"load": "grip", "name": "right", "begin": [-0.1, -0.1, 0.18], "end": [0.1, 0.1, 0.21]},
        ],
        "mesh_size": 0.025,
        "density": 10.0,
        "material": {"law": "neo_hookean", "coefficients": [1e6]},
        "poisson_ratio": 0.3,
        "gravity": [0.0, 0.0, 0.0],
    },
    "truth": {"mesh_scale": 2.0, "gravity": [-9.81, 0.0, 0.0], "uneven": 0.3,
              "material": {"law": "neo_hookean", "coefficients": [20000.0]}},
}  # fmt: skip
BENT = np.array([0.0, 0.0, 0.012, 0.0, 0.35, 0.0, 0.0, 0.0, -0.012, 0.1, -0.3, 0.0])
