"""What makes a plan less certain is told after it."""

from types import SimpleNamespace

from softform_tools.commands import goals


def test_the_warnings_of_a_result_are_told_with_its_lines(capsys):
    goals.tell(["reached"], SimpleNamespace(solve=SimpleNamespace(warnings=["Move each actuator once."])), None)
    goals.tell(["captured"], SimpleNamespace(), None)
    assert capsys.readouterr().out.splitlines() == ["reached", "Move each actuator once.", "captured"]
