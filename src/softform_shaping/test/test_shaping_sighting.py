"""What is seen and is not the object where it should be: told before it is believed, and nothing moves on."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from held_block import BLOCK, LENGTH

from softform_core.errors import SoftformError
from softform_shaping.camera import Picture, Solid
from softform_shaping.model import HeldModel
from softform_shaping.object_faults import FAULTS, checked_fault, spoilt
from softform_shaping.objects import ShapedObject
from softform_shaping.ours import Ours, OursController
from softform_shaping.preparation import prepared_task
from softform_shaping.printed import Printed, PrintedController
from softform_shaping.scene import Scene, make_scene
from softform_shaping.segmentation import cloud_of, dominant_hue
from softform_shaping.session import shape_object
from softform_shaping.sighting import ElsewhereError, Sighting, SightingError

Spoil = Callable[[list[Solid]], list[Solid]]


def wider(solids: list[Solid]) -> list[Solid]:
    return [solids[0]._replace(vertices=solids[0].vertices * [2.2, 1.0, 1.0]), *solids[1:]]


class Spoilt:
    """A scene in which the object is spoilt from its second picture on; how often the grippers moved is counted."""

    def __init__(self, scene: Scene, spoil: Spoil, sound: int = 1) -> None:
        self._scene, self._spoil, self._sound, self.moves = scene, spoil, sound, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._scene, name)

    def move(self, poses):
        self.moves += 1
        return self._scene.move(poses)

    def look(self) -> Picture:
        self._sound -= 1
        solids = self._scene.solids()
        return self._scene.camera.look(solids if self._sound >= 0 else self._spoil(solids), self._scene.random)


@pytest.fixture(scope="module")
def scene(block, model) -> Scene:
    return make_scene(block, model, 3)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (partial(spoilt, "gripper_opened"), "not where the object should be|beside the left gripper"),
        (partial(spoilt, "object_torn"), "nothing of the object [345]"),
        (partial(spoilt, "another_object"), "not where the object should be.*something else of its colour"),
        (partial(spoilt, "wrong_object"), "only .* is there.*the object that is described"),
        (wider, "not where the object should be.*the object that is described"),
    ],
)
def test_an_object_that_is_not_as_it_should_be_ends_the_task_where_the_grippers_are(spoil, words, scene, task):
    rig = Spoilt(scene, spoil, sound=0)
    shaped = shape_object(OursController(task, Ours()), rig, 5)
    assert isinstance(shaped.error, SightingError) and [len(shaped.iterations), rig.moves] == [0, 0]
    with pytest.raises(SightingError, match=words):
        raise shaped.error


def test_an_object_that_tears_midway_is_not_moved_on(block, task):
    rig = Spoilt(make_scene(block, task.model, 3), partial(spoilt, "object_torn"))
    shaped = shape_object(OursController(task, Ours()), rig, 5)
    assert isinstance(shaped.error, SightingError) and [len(shaped.iterations), rig.moves] == [1, 1]
    assert np.abs(rig.truth.poses).max() > 0.0


@pytest.mark.parametrize(("bad", "is_told"), [(2, False), (3, True)])
def test_three_pictures_in_turn_have_to_show_something_else(bad, is_told, block, task):
    pictures = iter([False, *[True] * bad])

    def torn_for_a_while(solids: list[Solid]) -> list[Solid]:
        return spoilt("object_torn", solids) if next(pictures, False) else solids

    rig = Spoilt(make_scene(block, task.model, 3), torn_for_a_while, sound=0)
    shaped = shape_object(OursController(task, Ours()), rig, 4)
    assert (shaped.error is not None) == is_told
    assert [len(shaped.iterations), rig.moves] == ([1, 1] if is_told else [4, 3])


def test_a_torn_rope_is_told_though_it_shows_few_pixels():
    described, task = prepared_task("rope_1")
    rig = Spoilt(make_scene(described, task.model, 3), partial(spoilt, "object_torn"), sound=3)
    shaped = shape_object(OursController(task, Ours()), rig, 8)
    assert [len(shaped.iterations), rig.moves] == [3, 3]
    with pytest.raises(SightingError, match="nothing of the object"):
        raise shaped.error


def test_the_printed_controller_is_told_before_it_is_drawn_to_another_object(scene, task):
    rig = Spoilt(scene, partial(spoilt, "another_object"), sound=0)
    shaped = shape_object(PrintedController(task, Printed(), np.random.default_rng(0)), rig, 5)
    assert isinstance(shaped.error, SightingError) and rig.moves == 0


def test_the_object_is_believed_though_it_is_softer_and_heavier_than_its_model(scene, task):
    sighting = OursController(task, Ours()).sighting
    picture = scene.look()
    cloud = cloud_of(picture, dominant_hue(picture), scene.intrinsics, scene.believed, scene.random)
    places = task.visual.places(task.model.rest_nodes)
    assert sighting.slices > 8
    sighting.require(places, cloud)
    for off in (
        [0.006, 0.0, 0.004],
        [0.0, 0.011, 0.0],
        [0.0, -0.011, 0.004],
    ):  # as the camera's pose may be
        sighting.require(places, cloud + off)
    with pytest.raises(SightingError, match="12 points of the object"):
        sighting.require(places, cloud[:12])


def test_a_part_of_the_object_that_is_elsewhere_is_not_taken_for_missing(scene, task):
    sighting = OursController(task, Ours()).sighting
    picture = scene.look()
    cloud = cloud_of(picture, dominant_hue(picture), scene.intrinsics, scene.believed, scene.random)
    part = np.abs(cloud[:, 2] - 0.5 * LENGTH) < 0.08 * LENGTH
    places = task.visual.places(task.model.rest_nodes)
    aside = cloud + np.where(part, 0.15, 0.0)[:, None] * [1.0, 0.0, 0.0]
    with pytest.raises(ElsewhereError, match="A part of what the camera sees is not where"):
        sighting.require(places, aside)
    with pytest.raises(SightingError, match="nothing of the object"):
        sighting.require(places, cloud[~part])


def test_a_short_object_has_no_slices_and_is_judged_all_the_same(task):
    short = ShapedObject.model_validate(
        {**BLOCK, "body": {**BLOCK["body"], "loads": [
            {"load": "grip", "name": "left", "begin": [-0.1, -0.1, -0.01], "end": [0.1, 0.1, 0.085]},
            {"load": "grip", "name": "right", "begin": [-0.1, -0.1, 0.11], "end": [0.1, 0.1, LENGTH + 0.01]},
        ]}}
    )  # fmt: skip
    model = HeldModel(short.body.simulator())
    sighting = Sighting(model, task.visual, 0.02)
    places = task.visual.places(model.rest_nodes)
    assert sighting.slices == 0
    sighting.require(places, places)
    with pytest.raises(SightingError):
        sighting.require(places, places + 0.1)


def test_faults_of_an_object_are_asked_for_by_name(scene):
    solids = scene.solids()
    assert checked_fault("clear") == "" and spoilt("", solids) is solids and spoilt("camera_lost", solids) is solids
    assert all(checked_fault(fault) == fault for fault in FAULTS)
    with pytest.raises(SoftformError, match="object_torn"):
        checked_fault("torn")
