"""What pages may say, and that the page's types are those of the models."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from softform_console.protocol import Points, to_server
from softform_console.types_for_page import typescript

TYPES = Path(__file__).parents[1] / "web" / "src" / "protocol.ts"

POINT = '{"id":1,"output":"skin","u":0.5,"v":0.5,"target":[0,0,0.1]}'


def test_the_pages_types_are_made_of_the_models():
    assert TYPES.read_text(encoding="utf-8") == typescript(), "python -m softform_console.types_for_page " + str(TYPES)


def test_points_are_taken():
    message = to_server.validate_json('{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT + "]}")
    assert isinstance(message, Points) and message.points[0].target == (0.0, 0.0, 0.1) and message.optimise


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT.replace("0.1", "NaN") + "]}",
        '{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT.replace("0.1", "1e400") + "]}",
        '{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT.replace('"u":0.5', '"u":1.5') + "]}",
        '{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT.replace("[0,0,0.1]", "[0,0]") + "]}",
        '{"type":"points","epoch":"7","stamp":1.5,"points":[' + POINT.replace('"id":1', '"id":1,"more":2') + "]}",
        '{"type":"points","points":[' + POINT + "]}",
        '{"type":"actuators","epoch":"7","stamp":1.5,"values":[]}',
        '{"type":"actuators","epoch":"7","stamp":1.5,"values":[Infinity]}',
        '{"type":"reset","epoch":"-1","stamp":1.5}',
        '{"type":"reach","epoch":"7","stamp":1.5,"target":1,"pose":"fixed","mode":"jump"}',
        '{"type":"go"}',
        '{"type":"stop","now":true}',
        "[]",
        "not JSON",
        "",
    ],
)
def test_what_is_wrong_is_refused(text):
    with pytest.raises(ValidationError):
        to_server.validate_json(text)
