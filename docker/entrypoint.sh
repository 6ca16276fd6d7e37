#!/usr/bin/env bash
# Runs a command in the environment of ROS and of the built workspace.
set -eo pipefail
source /opt/ros/jazzy/setup.bash
source /softform/install/setup.bash
export PATH=/softform/.venv/bin:$PATH
exec "$@"
