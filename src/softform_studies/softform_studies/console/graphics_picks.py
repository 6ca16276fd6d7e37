"""Picks by the graphics card against those of a tree on the processor: how near to each ray they agree."""

from typing import Any, NamedTuple

import numpy as np

from softform_core.arrays import Array
from softform_studies.console.browser import Tab

_AT_ONCE = 1000
_AIMED, _BESIDE, _AWAY = 300, 0.15, (0.3, 3.0)
"""Places that are aimed at, how far beside them, and from how far, over the surface's size."""


class Agreement(NamedTuple):
    """How picks by the graphics card agree with those by a tree.

    Attributes:
        rays: Their number.
        hits: How many meet the surface.
        footprint: By how much the worst ray would have to be wide for both to be right, m.
        differ: How many meet another triangle, or none.
    """

    rays: int
    hits: int
    footprint: float
    differ: int


def compare_picks(one: Tab, output: str, rays: int, seed: int = 0) -> Agreement:
    """Cast random rays at what a page shows of an output, and past it."""
    random = np.random.default_rng(seed)
    aims = np.array([one.place(output, *uv) for uv in random.uniform(0.02, 0.98, (_AIMED, 2))])
    size = float(np.ptp(aims, axis=0).max())
    aimed = aims[random.integers(len(aims), size=rays)] + _BESIDE * size * random.standard_normal((rays, 3))
    along = random.standard_normal((rays, 3))
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    origins = aimed - along * size * random.uniform(*_AWAY, (rays, 1))
    hits, differ, footprint = 0, 0, 0.0
    for start in range(0, rays, _AT_ONCE):
        part = np.hstack([origins, along])[start : start + _AT_ONCE]
        found = one.page.evaluate("(rays) => window.softformPicture.picks(rays)", part.tolist())
        for ray, graphics, tree in zip(part, found["graphics"], found["tree"], strict=True):
            hits += tree is not None
            differ += (graphics and graphics["triangle"]) != (tree and tree["triangle"])
            footprint = max(footprint, needed_footprint(ray, graphics, tree))
    return Agreement(rays, hits, footprint, differ)


def needed_footprint(ray: Array, graphics: Any, tree: Any) -> float:
    """Return how wide a ray (6,) must be for two picks to be both right, m; each has corners and point, or is None.

    That is how far the first one's point lies from the ray; where they name different triangles, it is also how near
    the ray passes an edge of one of them, or how near their places are to each other.
    """
    origin, along = ray[:3], ray[3:]
    beside = 0.0
    if graphics is not None:
        away = np.asarray(graphics["point"]) - origin
        beside = float(np.linalg.norm(away - (away @ along) * along))
    if (graphics and graphics["triangle"]) == (tree and tree["triangle"]):
        return beside
    ways = [_distance_from_edges(origin, along, np.array(one["corners"])) for one in (graphics, tree) if one]
    if graphics and tree:
        ways.append(float(np.linalg.norm(np.subtract(graphics["point"], tree["point"]))))
    return max(beside, min(ways))


def _distance_from_edges(origin: Array, along: Array, corners: Array) -> float:
    """Return the distance of a line from the edges of a triangle (3, 3)."""
    flat = corners - origin
    flat = flat - (flat @ along)[:, None] * along
    sides = np.roll(flat, -1, axis=0) - flat
    part = -(flat * sides).sum(axis=1) / np.maximum((sides**2).sum(axis=1), 1e-300)
    return float(np.linalg.norm(flat + np.clip(part, 0.0, 1.0)[:, None] * sides, axis=1).min())
