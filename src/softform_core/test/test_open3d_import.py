"""Open3D comes without its viewer for browsers."""

import subprocess
import sys


def test_open3d_comes_without_dash_and_plotly():
    code = "import sys, softform_core, open3d; print(*{'open3d', 'dash', 'plotly'} & sys.modules.keys())"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split() == ["open3d"]
