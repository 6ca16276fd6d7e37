"""Trainings elsewhere give what they give here, and errors of a training reach the caller."""

import pickle
from dataclasses import replace
from operator import methodcaller

import numpy as np
import pytest

from softform_core.errors import SoftformError
from softform_core.executors import InProcess
from softform_core.frames.frames import Frames
from softform_core.networks.mlp_weights import MlpWeights
from softform_core.surface.patch_set import PatchSet
from softform_studies.sim_to_real.direct_learning import AS_PRINTED
from softform_studies.sim_to_real.learners import Learners, learn_all

SHORT = replace(AS_PRINTED, hidden=(8,), steps=3)


def learners() -> Learners:
    u, v = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 5), indexing="ij")
    rest = np.stack([200 * u, 200 * v, 20 * np.sin(np.pi * u)], axis=-1).ravel()
    ends = (np.full(1, 500.0), np.full(1, 500.0), rest, np.ones(rest.size))
    return Learners(MlpWeights([np.zeros((rest.size, 1))], [np.zeros(rest.size)], "relu", *ends), PatchSet.of(5, 5), 0)


def frames(count: int) -> Frames:
    random = np.random.default_rng(0)
    clouds = [0.2 * random.uniform(0, 1, (120, 3)) for _ in range(count)]
    return Frames(random.uniform(0, 1000, (count, 1)), clouds, [np.tile([0.0, 0.0, 1.0], (120, 1))] * count)


class Elsewhere:
    """Does the work as another process would: all comes and goes pickled. Processes themselves: test_executors.py."""

    def run(self, make, items):
        """See `Executor`."""
        work = pickle.loads(pickle.dumps(make))()
        for item in items:
            yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(item)))))


def test_what_is_learned_elsewhere_is_the_same_as_here() -> None:
    lessons = {str(count): methodcaller("directly", frames(count), SHORT) for count in (5, 6)}
    actuation = np.array([[300.0]])
    here = {name: trained.handles(actuation) for name, trained in learn_all(learners(), lessons, InProcess())}
    there = {name: trained.handles(actuation) for name, trained in learn_all(learners(), lessons, Elsewhere())}
    assert set(here) == set(there) == {"5", "6"}
    for name in here:
        assert np.allclose(here[name], there[name], atol=1e-6)
    assert not np.allclose(here["5"], here["6"])


def test_an_error_of_a_training_reaches_the_caller_as_it_is() -> None:
    """Those of other processes: test_executors.py."""
    lessons = {str(count): methodcaller("directly", frames(count), SHORT) for count in (3, 4)}
    with pytest.raises(SoftformError, match="3 frames|4 frames"):
        list(learn_all(learners(), lessons, InProcess()))
