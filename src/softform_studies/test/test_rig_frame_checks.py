"""The collector's checks beside a reality of the virtual rig: true frames pass, jammed chambers are found."""

import numpy as np

from softform_core.frames.following import ShapeJudge
from softform_core.frames.quality import assess_cloud
from softform_core.robots import load_robot
from softform_rig.reality import load_reality
from softform_studies.sim_to_real.make_frames import make_frames

ROBOT = load_robot("membrane")


def test_true_frames_pass_and_jammed_ones_do_not():
    frames, _, _ = make_frames(ROBOT, load_reality("worn", ROBOT), 4, 0, points=6000, seed=123)
    judge = ShapeJudge(ROBOT)
    jammed = []
    for number, (actuation, cloud) in enumerate(zip(frames.actuation, frames.clouds, strict=True)):
        assert assess_cloud(cloud, ROBOT).fault == ""
        assert judge.fault(actuation, cloud) == ""
        for chamber in np.flatnonzero(actuation < 1500.0):
            commanded = actuation + 3000.0 * (np.arange(9) == chamber)
            jammed.append(f"{ROBOT.actuators[chamber]} is at" in judge.fault(commanded, cloud))
        judge.keep(number, actuation, cloud)
    assert len(jammed) >= 4 and np.mean(jammed) >= 0.8
