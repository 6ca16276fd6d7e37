"""A memory that is fitted together with the correction of the actuation that follows it. Not in paper 000.

Nobody knows by which law a body remembers. A sum of plays of fixed widths and of terms of a Prony series
(`forward.memory.PrandtlIshlinskii`) comes near any law that is monotone, and is linear in its unknowns, the weights.
Widths, terms and what is expected of the weights were chosen on the realities 600 to 623.
"""

from dataclasses import dataclass, replace

import numpy as np

from softform_core.arrays import Array
from softform_core.forward.memory import PrandtlIshlinskii
from softform_core.forward.rbf_warp import ActuationCorrection
from softform_core.training.actuation_model import ActuationModel

_WIDTHS = np.array([0.005, 0.012, 0.025, 0.045, 0.075, 0.12])
"""Widths of the plays, over half the range."""
_FADING = np.array([0.3, 0.8])
"""Shares of what is left to creep that are left at the next frame."""
_WEIGHT, _OWN, _SHARE = 0.3, 0.1, 0.02
"""Standard deviations that are expected of the plays' weights, common and of each actuation, and of what creeps."""
_LEAST = 0.005
"""Root mean square over the frames of what is remembered, over half the range, below which it is taken for none."""


@dataclass(frozen=True)
class RememberingModel(ActuationModel):
    """The correction of what a memory leaves of commanded actuations.

    Unknowns, in order: those of `behind`, the common weights (f,) of plays and creeping parts, and own ones (f, k).

    Attributes:
        behind: The correction that follows.
        lags: (f, n, k) relative distances of each play and each creeping part from the actuations.
    """

    behind: ActuationModel
    lags: Array

    @classmethod
    def of(cls, behind: ActuationModel, past: Array) -> "RememberingModel":
        """Return the model with a memory of the commands (n, h, k) before each frame, the oldest first."""
        parts = len(_WIDTHS) + len(_FADING)
        each = np.eye(parts)[:, :, None] * np.ones(len(behind.half))
        lags = [_memory(one, behind.half).effective_after(past, behind.actuation) - behind.actuation for one in each]
        return cls(behind.actuation, behind.middle, behind.half, behind, np.array(lags) / behind.half)

    def expected(self, of_behind: Array) -> Array:
        """Return standard deviations of the unknowns, where (b,) are those of the correction behind."""
        plays, slow, k = len(_WIDTHS), len(_FADING), len(self.half)
        own = np.repeat([_OWN, 0.0], [plays * k, slow * k])
        return np.concatenate([of_behind, np.repeat([_WEIGHT, _SHARE], [plays, slow]), own])

    def parts(self, unknowns: Array) -> tuple[Array, Array]:
        """Return the unknowns of the correction behind, and the weights (f, k)."""
        f, k = len(self.lags), len(self.half)
        of_behind, common, own = np.split(unknowns, np.cumsum([len(unknowns) - f - f * k, f]))
        return of_behind, common[:, None] + own.reshape(f, k)

    def memory(self, unknowns: Array) -> PrandtlIshlinskii | None:
        """Return the memory; None where hardly anything is remembered."""
        weights = self.parts(unknowns)[1]
        if np.sqrt(np.square(self._felt(weights)).mean()) < _LEAST:
            return None
        return _memory(weights, self.half)

    def _felt(self, weights: Array) -> Array:
        """Return what the memory adds to the relative actuations, (n, k)."""
        return np.asarray(np.einsum("fnk,fk->nk", self.lags, weights))

    def _after(self, unknowns: Array) -> tuple[ActuationModel, Array]:
        """Return the correction at what the memory leaves, and its unknowns."""
        of_behind, weights = self.parts(unknowns)
        return replace(self.behind, actuation=self.actuation + self.half * self._felt(weights)), of_behind

    def effective(self, unknowns: Array) -> Array:
        """See `ActuationModel.effective`."""
        after, of_behind = self._after(unknowns)
        return after.effective(of_behind)

    def values(self, unknowns: Array) -> Array:
        """See `ActuationModel.values`."""
        return self.effective(unknowns) - self.actuation / self.half

    def slopes(self, unknowns: Array) -> Array:
        """See `ActuationModel.slopes`."""
        after, of_behind = self._after(unknowns)
        of_own = np.einsum("nim,fnm->nifm", after.response(of_behind), self.lags)
        n, k = self.actuation.shape
        return np.concatenate([after.slopes(of_behind), of_own.sum(axis=3), of_own.reshape(n, k, -1)], axis=2)

    def response(self, unknowns: Array) -> Array:
        """Return the derivative of `effective` by what the memory leaves, (n, k, k)."""
        after, of_behind = self._after(unknowns)
        return after.response(of_behind)

    def correction(self, members: list[Array]) -> ActuationCorrection:
        """Return the mean of the corrections of several unknowns, with the mean of their memories."""
        correction = self.behind.correction([self.parts(one)[0] for one in members])
        return replace(correction, memory=self.memory(np.mean(members, axis=0)))


def _memory(weights: Array, half: Array) -> PrandtlIshlinskii:
    """Return the memory of weights (f, k), of a robot whose actuations have these halves of their range, (k,)."""
    plays = len(_WIDTHS)
    return PrandtlIshlinskii(np.multiply.outer(_WIDTHS, half), weights[:plays], _FADING, weights[plays:])
