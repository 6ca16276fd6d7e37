"""The card of a sim-to-real model: which N_fk it corrects, from which frames it was learned, how wrong it still is."""

from typing import Annotated, Literal

from pydantic import Field

from softform_core.networks.card import Count, Entry, KinematicsReference, Millimetres, Share, SurfaceCard


class Transfer(Entry):
    """N_rbf, the warp and what comes before them.

    `play` is the part of its range by which the body stays behind an actuation that turns back; 0 without a memory.
    """

    members: Count
    kernels: Count
    kernel_width_per_mm2: Annotated[float, Field(gt=0.0)]
    hidden: list[Count]
    activation: str
    spread_factor: Annotated[float, Field(ge=0.0)]
    spread_floor_mm: Millimetres
    play: Share = 0.0

    @property
    def memory(self) -> str:
        """The play in words."""
        return f"the body stays up to {self.play:.1%} of the range behind actuations that turn back"


class FramesUsed(Entry):
    """Frames that were learned from, of one store, by their numbers there."""

    store: str
    via: str
    source: str
    seed: int
    created: str
    git_revision: str
    used: list[Count]
    held_out: list[Count]
    left_out: dict[int, str]
    flagged: dict[int, str] = {}
    points_per_frame: Count
    coverage_mean: Share


class Training(Entry):
    """Settings of the training of N_rbf."""

    recipe: str
    seed: int
    best_epochs: list[Count]
    validation_mm: list[Millimetres]
    seconds: float
    threads: Count
    continues: str | None


class HeldOutErrors(Entry):
    """Distances between captures that took no part in training and the predicted surface, mm.

    The noise floor is what remains of a perfect prediction; it is None for markers, too few to estimate the noise.
    """

    frames: Count
    before_mean: Millimetres
    before_99_percentile: Millimetres
    after_mean: Millimetres
    after_99_percentile: Millimetres
    noise_floor_mean: Millimetres | None
    within_one_sigma: Share
    within_two_sigma: Share


class SurfaceSimToRealCard(SurfaceCard):
    """Everything about N_s2r of a surface that is not in its weights."""

    model: Literal["surface sim-to-real"] = "surface sim-to-real"
    forward_kinematics: KinematicsReference
    transfer: Transfer
    frames: FramesUsed
    training: Training
    errors_mm: HeldOutErrors

    def to_markdown(self) -> str:
        """Return the card for people."""
        t, d, r, e, k = self.transfer, self.frames, self.training, self.errors_mm, self.forward_kinematics
        noise = ""
        if e.noise_floor_mean is not None:
            noise = (
                f" A perfect prediction would leave the capture's own noise, {e.noise_floor_mean:.3f} mm in the mean."
            )
        left_out = "".join(f"\n- frame {number} is left out: {reason}" for number, reason in sorted(d.left_out.items()))
        flagged = "".join(f"\n- look at frame {number}: {reason}" for number, reason in sorted(d.flagged.items()))
        memory = f"| memory | {t.memory} |\n" if t.play else ""
        continued = "" if r.continues is None else f" Continues the model `{r.continues[:12]}`."
        return f"""{self._head("Sim-to-real transfer")}

| | |
|---|---|
| takes | {self._surface()}, simulated, and points on it, mm |
| gives | those points of the real surface (paper 000, Eqs. 2-4) and one standard deviation along its normal, mm |
| network | N_rbf (Eq. 3): {t.members} member(s), hidden layers {t.hidden}, {t.activation}; {t.kernels} kernels, \
c = {t.kernel_width_per_mm2:g} / mm^2 |
{memory}| uncertainty | sqrt(({t.spread_factor:.3f} x spread of the members)^2 + ({t.spread_floor_mm:.3f} mm)^2) |
| N_fk | sha256 `{k.weights_sha256}`: the model is rejected beside any other |
{self._files()}

## Errors

Distances between what was captured in {e.frames} held-out frames, which took no part in training or selection, and the
predicted surface.{noise}

| | mean, mm | 99 % are below, mm |
|---|---|---|
| simulation alone | {e.before_mean:.3f} | {e.before_99_percentile:.2f} |
| with sim-to-real | {e.after_mean:.3f} | {e.after_99_percentile:.2f} |

Of those distances {e.within_one_sigma:.0%} lie within one and {e.within_two_sigma:.0%} within two standard deviations
of uncertainty and noise together (a Gaussian: 68 % and 95 %).

## Frames and training

{len(d.used)} frames of `{d.store}` ({d.source}, by {d.via}, seed {d.seed}, begun {d.created}, revision
{d.git_revision}) were learned from, up to {d.points_per_frame} points each; {len(d.held_out)} were held out \
({", ".join(map(str, d.held_out))}) and {len(d.left_out)} left out.
They show {d.coverage_mean:.0%} of the robot in the mean.{left_out}{flagged}

Recipe `{r.recipe}`, seed {r.seed}, best epochs {", ".join(map(str, r.best_epochs))}; {r.seconds:.0f} s on {r.threads} \
thread(s).{continued} {self._made()}
"""
