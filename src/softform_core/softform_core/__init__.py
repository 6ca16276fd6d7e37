"""Softform without ROS: robots, simulation, surfaces, networks, kinematics and their command line."""

import sys
from types import ModuleType

# With its viewer for browsers, which nothing here shows, Open3D imports dash and plotly: half of its time, 30 MB.
_VIEWER = ModuleType("open3d.visualization.draw_plotly")
_VIEWER.__dict__.update(dict.fromkeys(("get_plotly_fig", "draw_plotly", "draw_plotly_server")))
sys.modules.setdefault(_VIEWER.__name__, _VIEWER)
