"""Laws by which a real body remembers what its actuators did: plays, Bouc and Wen's hysteresis, creep.

A body feels other values than its actuators have. Hysteresis does not depend on time: the path alone decides. Creep
depends on time alone. No learner is told which law a reality follows, nor with which numbers.
"""

from typing import Annotated, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from softform_core.arrays import Array
from softform_core.bodies.realities import Values, positive, spread_values
from softform_core.robots.actuators import each
from softform_core.robots.description import Description, NotNegative, Positive

Share = Annotated[float, Field(gt=0.0, lt=1.0)]


class Creep(Description):
    """The material follows a share of every change only slowly.

    What is left to follow, x, falls like exp(-t / time). With an `overstress` x_0, in each actuator's unit, it falls by
    Eyring's law, dx/dt = -(x_0 / time) sinh(x / x_0): far from the end faster than in proportion, so that hysteresis
    depends on the rate.
    """

    share: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    time: Positive = 20.0
    overstress: Values | None = None

    def check(self, count: int) -> None:
        """Check that so many actuators may have this creep.

        Raises:
            ValueError: If it has numbers of another number of actuators, or one that is not above 0.
        """
        if self.overstress is not None:
            spread_values(self.overstress, count, "creep.overstress", positive)

    def left(self, behind: Array, seconds: float) -> Array:
        """What is left of `behind` (k,) after so many seconds; both laws are solved exactly."""
        fading = np.exp(-seconds / self.time)
        if self.overstress is None:
            return behind * fading
        half = 2.0 * spread_values(self.overstress, len(behind), "creep.overstress", positive)
        with np.errstate(divide="ignore"):  # far behind the hyperbolic tangent rounds to one
            left = half * np.arctanh(np.tanh(behind / half) * fading)
        return np.asarray(np.clip(left, -np.abs(behind), np.abs(behind)))


class Hysteresis(Protocol):
    """A law with its state; it begins at rest, where all values are zero."""

    def follow(self, values: Array) -> Array:
        """What is felt, (k,), once the actuators have gone straight to `values` (k,)."""


class Plays(Description):
    """Prandtl and Ishlinskii's hysteresis: a weighted sum of play operators of several widths.

    Attributes:
        law: Name of the law.
        widths: Half the gap of each play, in the actuator's unit.
        weights: Share of each play in what is felt; what they leave of one follows at once.
        scale: Factor of all widths, of each actuator.
    """

    law: Literal["plays"] = "plays"
    widths: Annotated[list[NotNegative], Field(min_length=1, max_length=20)]
    weights: Annotated[list[NotNegative], Field(min_length=1, max_length=20)]
    scale: Values = 1.0

    @model_validator(mode="after")
    def _fits(self) -> "Plays":
        if len(self.weights) != len(self.widths) or sum(self.weights) > 1.0 + 1e-9:
            raise ValueError("hysteresis.weights must be one for each of hysteresis.widths, and not sum to more than 1")
        return self

    def start(self, count: int) -> Hysteresis:
        """The law of a body of so many actuators, at rest.

        Raises:
            ValueError: If the scales do not fit.
        """
        scale = spread_values(self.scale, count, "hysteresis.scale", positive)
        return SumOfPlays(np.multiply.outer(self.widths, scale), np.array(self.weights))


class SumOfPlays:
    """Play operators of widths (j, k), whose results count with weights (j,)."""

    def __init__(self, widths: Array, weights: Array) -> None:
        self._widths, self._weights = widths, weights
        self._played = np.zeros(widths.shape)

    def follow(self, values: Array) -> Array:
        """As `Hysteresis.follow`."""
        self._played = np.clip(self._played, values - self._widths, values + self._widths)
        return np.asarray(values + self._weights @ (self._played - values))


class BoucWen(Description):
    """Bouc and Wen's hysteresis, asymmetric as Wang and Wen have it: the body stays `lag` · z behind its actuator, x.

    dz/dx = (1 - |z|^n (1 - beta + beta sgn(x' z) + phi (sgn x' + sgn z))) / width (Song and Der Kiureghian, Journal of
    Engineering Mechanics 132, 2006, pp. 610-618). On a long way z comes to 1 / (1 + 2 phi)^(1/n) upwards and to
    -1 / (1 - 2 phi)^(1/n) downwards.

    Attributes:
        law: Name of the law.
        lag: How far the body stays behind on a long way, in the actuator's unit, if both ways are alike.
        steepness: `lag` over `width`: the share of a small turn that the body does not follow.
        exponent: n; the larger, the sharper the end of a turn.
        beta: How a turn differs from going on; 0.5: it begins as it ended.
        asymmetry: phi.
        scale: Factor of lag and width, of each actuator.
    """

    law: Literal["bouc_wen"] = "bouc_wen"
    lag: Positive
    steepness: Share = 0.8
    exponent: Annotated[float, Field(ge=1.0, le=5.0)] = 1.0
    beta: Annotated[float, Field(ge=0.5, le=1.0)] = 0.5
    asymmetry: Annotated[float, Field(ge=-0.3, le=0.3)] = 0.0
    scale: Values = 1.0

    def start(self, count: int) -> Hysteresis:
        """The law of a body of so many actuators, at rest.

        Raises:
            ValueError: If the scales do not fit.
        """
        return _BoucWen(self, spread_values(self.scale, count, "hysteresis.scale", positive))


_FORGETS, _STEPS = 16.0, 6.0
"""Way, in widths, after which z no longer depends on where it was; steps of Runge and Kutta's method in a width."""


class _BoucWen:
    def __init__(self, law: BoucWen, scale: Array) -> None:
        self._law, self._lag = law, law.lag * scale
        self._values, self._z = np.zeros(len(scale)), np.zeros(len(scale))

    def follow(self, values: Array) -> Array:
        """As `Hysteresis.follow`."""
        law = self._law
        way = (values - self._values) * law.steepness / self._lag
        counts = np.clip(way, -_FORGETS, _FORGETS)
        steps = 1 + int(_STEPS * np.abs(counts).max())
        step, z, sign = counts / steps, self._z, np.sign(way)

        def slope(z: Array) -> Array:
            shape = 1.0 - law.beta + law.beta * sign * np.sign(z) + law.asymmetry * (sign + np.sign(z))
            return np.asarray(1.0 - np.abs(z) ** law.exponent * shape)

        for _ in range(steps):
            first = slope(z)
            second = slope(z + 0.5 * step * first)
            third = slope(z + 0.5 * step * second)
            z = z + step / 6.0 * (first + 2.0 * (second + third) + slope(z + step * third))
        self._values, self._z = values.copy(), z
        return np.asarray(values - self._lag * z)


HysteresisLaw = NotNegative | list[NotNegative] | Annotated[Plays | BoucWen, Field(discriminator="law")]
"""Width of one play, of all actuators or of each, or another law."""


def start_hysteresis(law: HysteresisLaw, count: int) -> Hysteresis:
    """The law of a body of so many actuators, at rest.

    Raises:
        ValueError: If it has numbers of another number of actuators.
    """
    if isinstance(law, Plays | BoucWen):
        return law.start(count)
    if isinstance(law, list) and len(law) != count:
        raise ValueError(f"hysteresis has {len(law)} numbers, the robot has {count} actuators")
    return SumOfPlays(each(law, count)[None], np.ones(1))


class MaterialMemory:
    """Values that a body feels in place of those that its actuators have; it begins at rest.

    Args:
        hysteresis: Comes first.
        creep: Each a share of what the hysteresis leaves.
        count: Number of actuators.
    """

    def __init__(self, hysteresis: HysteresisLaw, creep: list[Creep], count: int) -> None:
        for one in creep:
            one.check(count)
        self._hysteresis, self._creep = start_hysteresis(hysteresis, count), creep
        self._felt = np.zeros(count)
        self._behind = [np.zeros(count) for _ in creep]

    def feel(self, values: Array, seconds: float) -> Array:
        """Effective values (k,), after the actuators have been at `values` (k,) for so long."""
        before, self._felt = self._felt, self._hysteresis.follow(values)
        moved = self._felt - before
        self._behind = [
            one.left(behind + moved, seconds) for one, behind in zip(self._creep, self._behind, strict=True)
        ]
        slow = sum((one.share * behind for one, behind in zip(self._creep, self._behind, strict=True)), 0.0)
        return np.asarray(self._felt - slow)
