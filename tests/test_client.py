"""The examples of docs/client.md do what they say, on a running stack."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "client.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.timeout(180)


def test_every_example_runs(stack):
    names: dict[str, object] = {"__name__": "notebook"}
    printed = []
    for number, example in enumerate(EXAMPLES, 1):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(example, f"docs/client.md, example {number}", "exec"), names)
        printed.append(output.getvalue())
    assert len(EXAMPLES) == 8
    assert names["seen"].measured.valid and names["seen"].measured.mean_error < 5e-3
    assert names["plan"].solve.mean_error < 1e-3 and names["plan"].solve.reachable
    assert names["there"].times == pytest.approx([0.0, 2.0, 4.0, 6.0], abs=0.5)
    assert max(names["back"].errors) < 1e-3 and "moving 1" in printed[3]
    assert max(names["led"].errors) < 1e-3
    states = names["states"]
    assert len(states) == 100 and states[-1].targets > 80 and states[-1].commands > 50
    assert np.isfinite(states[-1].mean_error)
    assert states[-1].targets_rejected == states[0].targets_rejected  # the stack is shared with other tests
    assert min(names["motion"].clearances) > 0.003
    assert "Waypoint 1" in printed[7] and "outside" in printed[7]
