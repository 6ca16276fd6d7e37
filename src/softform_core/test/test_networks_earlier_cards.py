"""Cards of earlier versions: rejected with a command, converted by it."""

import json
import shutil

import pytest

from softform_core.networks.model_files import ModelError
from softform_core.networks.store import FORWARD_KINEMATICS, TIP_KINEMATICS
from softform_core.paths import models_dir
from softform_core.robots import load_robot
from softform_core.stores.convert import convert


@pytest.mark.parametrize("name", ["membrane", "planar_fingers", "three_chamber"])
def test_cards_of_earlier_versions_are_rejected_with_a_command_that_converts_them(tmp_path, name):
    """The cards are those that the shipped models had; today's were made of them."""
    robot, folder = load_robot(name), tmp_path / name
    shutil.copytree(models_dir() / name, folder)
    today = {
        path.relative_to(folder): path.read_text() for path in folder.rglob("*.*") if path.suffix in {".json", ".md"}
    }
    for path in folder.rglob("*.json"):
        path.write_text(json.dumps(earlier_form(json.loads(path.read_text()))))
    for page in folder.rglob("*.md"):
        page.unlink()
    files = TIP_KINEMATICS if robot.frames else FORWARD_KINEMATICS
    with pytest.raises(ModelError, match=f"softform convert .*{name} --robot {name}"):
        files.read_card(folder, robot)
    assert len(convert(folder, robot)) == 2
    assert convert(folder, robot) == []
    for path, text in today.items():
        found = (folder / path).read_text()
        assert (json.loads(found) == json.loads(text)) if path.suffix == ".json" else (found == text), path
    files.load(folder, robot)


def test_a_card_of_before_surfaces_could_be_several_is_read(tmp_path):
    robot = load_robot("membrane")
    path = models_dir() / "membrane" / FORWARD_KINEMATICS.card_file
    content = json.loads(path.read_text())
    (content["surface"],) = content.pop("surfaces")
    (tmp_path / path.name).write_text(json.dumps(content))
    assert FORWARD_KINEMATICS.read_card(tmp_path, robot) == FORWARD_KINEMATICS.read_card(path.parent, robot)


def earlier_form(card):
    """A card as version 1 wrote it."""
    names = {
        "surface kinematics": "softform/forward-kinematics",
        "surface sim-to-real": "softform/sim-to-real",
        "tip kinematics": "softform/tip-kinematics",
        "tip sim-to-real": "softform/tip-sim-to-real",
    }
    model, (surface, *_), taken = card.pop("model"), card.pop("surfaces", [None]), card.pop("actuations")
    card |= {"schema_name": names[model], "schema_version": 1, "chambers": card.pop("actuators")}
    del card["quantity"], card["unit"]
    ends = [[one[end] for one in taken] for end in ("minimum", "maximum")]
    if model == "surface kinematics":
        card |= {"pressure_min_pa": ends[0], "pressure_max_pa": ends[1], "surface_degree": surface["degree"]}
        card["architecture"] |= {"inputs": len(taken), "outputs": [surface["rows"], surface["cols"], 3]}
    elif model == "surface sim-to-real":
        card["forward_kinematics"] |= {key: surface[key] for key in ("rows", "cols", "degree")}
    elif model == "tip kinematics":
        card |= {"actuators": [one["name"] for one in taken], "actuation_min_pa": ends[0], "actuation_max_pa": ends[1]}
    return card
