"""The card of N_fk of a surface: what it was trained on and how wrong it is."""

from typing import Literal

from softform_core.networks.card import Count, Entry, Millimetres, Split, SurfaceCard


class Architecture(Entry):
    """Shape of the network."""

    hidden: list[Count]
    activation: str
    batch_norm: bool
    parameters: Count


class TrainingData(Entry):
    """Source of the shapes; the simulation's own provenance is repeated."""

    store: str
    samples: Count
    symmetric_images: Count
    simulation_seed: int | None
    simulation_command: str
    simulation_git_revision: str
    simulation_created: str

    @property
    def is_imported(self) -> bool:
        """Whether the shapes are imported: those that Softform simulates have a seed."""
        return self.simulation_seed is None


class Training(Entry):
    """Settings of the network's training."""

    recipe: str
    seed: int
    epochs: Count
    best_epoch: Count
    batch_size: Count
    learning_rate: float
    seconds: float
    threads: Count


class Errors(Entry):
    """Distances between control points, mm, and the floor set by the B-spline fit at the mesh's vertices."""

    train_mean: Millimetres
    train_max: Millimetres
    validation_mean: Millimetres
    validation_max: Millimetres
    test_mean: Millimetres
    test_max: Millimetres
    test_99_percentile: Millimetres
    mean_shape_mean: Millimetres
    fit_mean: Millimetres
    fit_max: Millimetres


class SurfaceKinematicsCard(SurfaceCard):
    """Everything about N_fk of a surface that is not in its weights."""

    model: Literal["surface kinematics"] = "surface kinematics"
    architecture: Architecture
    data: TrainingData
    split: Split
    training: Training
    errors_mm: Errors

    def to_markdown(self) -> str:
        """Return the card for people."""
        a, d, t, e = self.architecture, self.data, self.training, self.errors_mm
        seed = "" if d.simulation_seed is None else f"seed {d.simulation_seed}, "
        return f"""{self._head("Forward kinematics")}

| | |
|---|---|
| takes | {self._takes()} |
| gives | {self._surface()}, mm |
| network | N_fk (Eq. 14): hidden layers {a.hidden}, {a.activation}, batch norm {"yes" if a.batch_norm else "no"}, \
{a.parameters} parameters |
{self._files()}

## Errors

Distances between predicted and fitted control points. The test part took no part in training or selection; symmetric
images of one shape never lie in two parts.

| part | shapes | mean, mm | largest, mm |
|---|---|---|---|
| training | {self.split.train} | {e.train_mean:.3f} | {e.train_max:.2f} |
| validation | {self.split.validation} | {e.validation_mean:.3f} | {e.validation_max:.2f} |
| test | {self.split.test} | {e.test_mean:.3f} | {e.test_max:.2f} |

On the test part, 99 % of the shapes are below {e.test_99_percentile:.2f} mm at their worst control point.
For scale: predicting the mean shape always would err by {e.mean_shape_mean:.2f} mm in the mean. Floor: the B-spline
surface itself is {e.fit_mean:.3f} mm (mean) and {e.fit_max:.2f} mm (largest) away from the vertices of the simulated
shapes.

## Data and training

{d.samples} simulated shapes from `{d.store}`, made by `{d.simulation_command}` ({seed}revision
{d.simulation_git_revision}, {d.simulation_created}); {d.symmetric_images} image(s) of each by the robot's symmetry.
Recipe `{t.recipe}`, seed {t.seed}, {t.epochs} epochs (best: {t.best_epoch}), batches of {t.batch_size}, learning rate
{t.learning_rate:g}; {t.seconds:.0f} s on {t.threads} thread(s). {self._made()}
"""
