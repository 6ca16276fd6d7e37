"""The frame of a tip whose body is imported."""

from types import SimpleNamespace

import numpy as np
from builtin_interfaces.msg import Time

from softform_core.bodies.imported.description import ImportedBody
from softform_core.forward.tip_model import load_tip_model
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_inference import tip_predictions


def test_the_axes_of_an_imported_tip_stay_those_of_the_base(monkeypatch):
    simulated = load_robot("three_chamber")
    model = load_tip_model(simulated, models_dir() / "three_chamber")
    monkeypatch.setattr(tip_predictions, "tip_model_in_use", lambda robot, folder, transfer: model)
    body = ImportedBody(kind="imported", inputs_count=3, width=0.042, length=0.042, height=0.116)
    told = []
    node = SimpleNamespace(
        parameters={"model": "", "sim_to_real": ""}, create_publisher=lambda *_: SimpleNamespace(publish=told.append)
    )
    predictions = tip_predictions.TipPredictions(node, simulated.model_copy(update={"body": body}))
    actuation = np.array([3e4, 0.0, 1e4])
    predictions.publish(actuation, Time(), stale=False)
    ((frame,),) = (message.transforms for message in told)
    turn, place = frame.transform.rotation, frame.transform.translation
    assert (turn.x, turn.y, turn.z, turn.w) == (0.0, 0.0, 0.0, 1.0)
    np.testing.assert_allclose([place.x, place.y, place.z], model.tip(actuation) / 1e3, atol=1e-12)
