"""Softform without ROS: robots, simulation, surfaces, networks, kinematics and their command line."""

from softform_core.deferred import UnparsedDocstring, defer

# Open3D's viewer for browsers imports dash and plotly: half of Open3D's time, 30 MB.
defer("open3d.visualization.draw_plotly", __path__=[], get_plotly_fig=None, draw_plotly=None, draw_plotly_server=None)
# What compiles networks, which an optimiser only keeps away from its steps: as long again as PyTorch itself, 70 MB.
defer("torch._dynamo", graph_break=lambda: None, disable=lambda function, recursive=True, wrapping=True: function)
# SciPy parses its functions' docstrings at import, to add which libraries' arrays they work on: two fifths of its time.
defer("scipy._lib._docscrape", __path__=[], FunctionDoc=UnparsedDocstring, Parameter=lambda *parts: parts)
# SciPy takes all names of NumPy, and with them three parts that it does not use: a twelfth of a node's imports.
defer("numpy.f2py")
defer("numpy.testing")
defer("numpy.ma")
