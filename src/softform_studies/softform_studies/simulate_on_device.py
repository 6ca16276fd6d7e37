"""Many membranes at once on a device, as `softform simulate --device` solves them, beside the single solver."""

import time
from collections.abc import Sequence

import numpy as np
from threadpoolctl import threadpool_limits

from softform_core.arrays import Array
from softform_core.robots import load_robot
from softform_core.simulation.sampled_body import SampledBody, Solved
from softform_studies.simulate import PAPER_SECONDS, random_commands, solved

_COMPARED = 20


def run(device: str, shapes: int = 1000, seed: int = 0) -> dict[str, object]:
    """Solve random actuations of the robot `membrane` on a device twice, and the first of them by the single solver.

    Args:
        device: `cuda:0` and so on, or `cpu`.
        shapes: Number of random actuations.
        seed: Seed of the actuations.

    Returns:
        JSON-ready figures: the device's, the single solver's on one core, their ratio, the paper's.

    Raises:
        SoftformError: If warp is not installed, or there is no such device.
    """
    robot = load_robot("membrane")
    commands = random_commands(robot, shapes, seed)
    with threadpool_limits(1):
        began = time.perf_counter()
        many = robot.body.batched(device)
        blocks = np.split(commands, range(many.block, shapes, many.block))
        _solve(many, blocks[:1])
        prepared = time.perf_counter()
        found = _solve(many, blocks)
        seconds = time.perf_counter() - prepared
        again = _solve(many, blocks)
        body = robot.body.simulator()
        single, single_seconds, _ = solved(body, commands[:_COMPARED])
    vertices, vertices_again = (np.concatenate([one.outputs["vertices"] for one in both]) for both in (found, again))
    gaps = [np.abs(body.points(one.unknowns)[0] - ours).max() for one, ours in zip(single, vertices, strict=False)]
    return {
        "robot": robot.name,
        "device": device,
        "shapes": shapes,
        "block": many.block,
        "seconds_to_prepare": prepared - began,
        "seconds": seconds,
        "seconds_per_shape": seconds / shapes,
        "converged_share": float(np.mean([not reason for one in found for reason in one.failures])),
        "left_to_the_single_solver": sum(int(one.singly.sum()) for one in found if one.singly is not None),
        "same_bits_again": bool(np.array_equal(vertices, vertices_again)),
        "single_solver": {
            "shapes": len(single),
            "core_seconds_per_shape": float(np.mean(single_seconds)),
            "largest_distance_m": float(np.max(gaps)),
        },
        "single_over_device": float(np.mean(single_seconds)) * shapes / seconds,
        "paper_seconds_per_shape": PAPER_SECONDS[robot.name],
    }


def _solve(body: SampledBody, blocks: Sequence[Array]) -> list[Solved]:
    return [body.solve(block, np.zeros((*block.shape, 0))) for block in blocks]
