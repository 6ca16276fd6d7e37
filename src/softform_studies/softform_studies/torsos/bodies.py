"""Random people, drawn with `anny`: the paper's scans (CAESAR) are not public.

`anny` (NAVER, Apache-2.0) is MakeHuman's body model (CC0) in PyTorch; its data come with the package. It is no part of
Softform's installation. Its first use builds a cache: minutes, and 0.8 GB in its own folder.

Drawn uniformly, each on anny's scale from 0 to 1: chosen, no statistics of a population.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

RANGES = {
    "gender": (0.0, 1.0),  # from male to female
    "age": (0.65, 0.9),  # 2/3 is a young adult, 1 old
    "muscle": (0.0, 1.0),
    "weight": (0.0, 1.0),
    "height": (0.2, 0.7),  # 1.5 to 2 m
    "proportions": (0.0, 1.0),
}

BODIES = 300
"""So many are drawn; one in fourteen is of the mannequin's size."""

_ARMS = ("shoulder", "upperarm", "lowerarm", "wrist", "metacarpal", "finger")
_HALF = 0.5
_MIDLINE = 0.004  # m
_AROUND_HIPS = 0.15  # m


@dataclass(frozen=True)
class Bodies:
    """People, standing, life-size; x to the front, y to the left, z upwards from the base of the neck.

    Attributes:
        vertices: (n, V, 3) m.
        faces: (F, 3), without arms: those are none of a torso.
        crotch: (n,) m, height of the crotch, below 0.
        stature: (n,) m.
    """

    vertices: Array
    faces: NDArray[np.int64]
    crotch: Array
    stature: Array


def draw_bodies(count: int, seed: int) -> Bodies:
    """Draw people from `RANGES`; the same for the same count and seed.

    Raises:
        SoftformError: If `anny` is not installed.
    """
    try:
        import anny
        import torch
    except ImportError as error:
        raise SoftformError(
            f"People are drawn with the package anny, which cannot be imported: {error}.",
            "Install it in this environment: pip install anny",
        ) from error
    model = anny.Anny()
    random = np.random.default_rng(seed)
    drawn = {name: torch.tensor(random.uniform(*of, count), dtype=torch.float32) for name, of in RANGES.items()}
    with torch.no_grad():
        people = model(phenotype_kwargs=drawn)
    labels = [str(label) for label in model.bone_labels]
    heads = people["rest_bone_heads"].numpy().astype(np.float64)
    neck, hip = heads[:, labels.index("neck01")], heads[:, labels.index("upperleg01.L")]
    vertices = people["rest_vertices"].numpy().astype(np.float64)
    stature = np.ptp(vertices[:, :, 2], axis=1)
    vertices -= neck[:, None]
    near_hips = np.abs(vertices[:, :, 2] - (hip - neck)[:, None, 2]) < _AROUND_HIPS
    midline = (np.abs(vertices[:, :, 0]) < _MIDLINE) & near_hips
    crotch = np.where(midline, vertices[:, :, 2], np.inf).min(axis=1)
    of_arms = np.isin(model.vertex_bone_indices.numpy(), [i for i, one in enumerate(labels) if one.startswith(_ARMS)])
    share = (model.vertex_bone_weights.numpy() * of_arms).sum(axis=1)
    faces = model.faces.numpy()
    # anny looks along -y, its left is +x.
    turned = np.stack([-vertices[:, :, 1], vertices[:, :, 0], vertices[:, :, 2]], axis=-1)
    return Bodies(turned, faces[(share[faces] < _HALF).all(axis=1)], crotch, stature)
