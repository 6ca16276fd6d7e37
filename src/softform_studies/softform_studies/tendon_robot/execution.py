"""Executes runs of configurations on a reality of the tendon robot, many robots at once, and records their shapes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.executors import Executor
from softform_core.robots import Robot
from softform_core.simulation.simulated_body import PathDependentBody, SweptBody
from softform_core.units import MM_PER_M
from softform_rig.reality import Reality, true_values
from softform_studies.tendon_robot.cameras import Cameras
from softform_studies.tendon_robot.configurations import Run, pulls_of
from softform_studies.tendon_robot.shapes import PARTS, RecordedShapes

HELD_S = 3.0
"""How long the robot stands at a configuration before it is looked at, s."""
_ROBOTS = 150
"""Robots that one worker leads at once: the more, the less each costs."""


@runtime_checkable
class PathBody(PathDependentBody, SweptBody, Protocol):
    """A slender body whose shape depends on its path."""


@dataclass(frozen=True, eq=False)
class Share:
    """Some robots of a run, which one worker leads; the first of them is number `first` of the robots of all runs."""

    run: Run
    first: int

    @property
    def recorded(self) -> int:
        """How many shapes are recorded."""
        return int(self.run.is_recorded.sum())


def path_body(robot: Robot, reality: Reality) -> PathBody:
    """Return the body of a reality that depends on its path.

    Raises:
        SoftformError: If it does not.
    """
    body = robot.body.real_simulator(reality.body)
    if not isinstance(body, PathBody):
        raise SoftformError(
            f"The shape of reality '{reality.name}' of robot '{robot.name}' does not depend on its path.",
            "Give --robot tendon_robot --reality printed, or a reality with a `path`.",
        )
    return body


def shares_of(runs: list[Run]) -> list[Share]:
    """Return the runs in shares of so many robots as one worker leads at once."""
    shares, first = [], 0
    for run in runs:
        for begin in range(0, len(run.configurations), _ROBOTS):
            part = slice(begin, begin + _ROBOTS)
            shares.append(Share(Run(run.part, run.configurations[part], run.is_recorded[part]), first + begin))
        first += len(run.configurations)
    return shares


def execute(
    robot: Robot, reality: Reality, shares: list[Share], seed: int, executor: Executor
) -> Iterator[tuple[int, RecordedShapes]]:
    """Yield the number of a share's first robot and its recorded shapes, in any order; `chain` numbers all robots."""
    yield from executor.run(partial(_worker, robot, reality, seed), shares)


def _worker(robot: Robot, reality: Reality, seed: int) -> Callable[[Share], tuple[int, RecordedShapes]]:
    body, skin = path_body(robot, reality), robot.body.skin()

    def work(share: Share) -> tuple[int, RecordedShapes]:
        run, cameras = share.run, Cameras(robot, skin.faces, seed, noise=share.first)
        lines, directors, clouds = [], [], []
        for step, (line, turned) in enumerate(led(body, robot, reality, run.configurations)):
            for chain in np.flatnonzero(run.is_recorded[:, step]):
                lines.append(line[chain])
                directors.append(turned[chain])
                clouds.append(cameras.cloud(skin.vertices(line[chain], turned[chain])))
        steps, chains = np.nonzero(run.is_recorded.T)
        in_order = np.lexsort((steps, chains))
        shapes = RecordedShapes(
            q_current=run.configurations[chains, steps],
            past=run.past[chains, steps],
            part=np.full(len(steps), PARTS.index(run.part)),
            chain=share.first + chains,
            cloud=_in_mm(np.array(clouds)),
            centre_line=_in_mm(np.array(lines)),
            directors=np.array(directors),
            robot=robot.given_as,
        )
        return share.first, shapes.of(in_order)

    return work


def _in_mm(values: NDArray) -> NDArray:
    return np.asarray(values * values.dtype.type(MM_PER_M))


def led(body: PathBody, robot: Robot, reality: Reality, configurations: Array) -> Iterator[tuple[Array, Array]]:
    """Yield centre lines (C, S, 3) m and directors of C rested robots that are led through configurations (C, L, k)."""
    count = len(configurations)
    unknowns, state = body.new(count)
    rate = float(robot.slew_rate.min())
    home = true_values(reality, robot, np.broadcast_to(robot.safe, (count, len(robot.safe))))
    for pulls in (home, *true_values(reality, robot, pulls_of(robot, configurations.swapaxes(0, 1)))):
        way = np.abs(pulls - state.pulls).max(axis=1)
        unknowns, state = body.advance(unknowns, pulls, state, np.maximum(way / rate, 1e-3))
        unknowns, state = body.advance(unknowns, pulls, state, HELD_S)
        if pulls is not home:
            yield body.stations(unknowns)
