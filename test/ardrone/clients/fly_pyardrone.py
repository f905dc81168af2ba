# SPDX-License-Identifier: Apache-2.0
"""Flies with PyPI's pyardrone: takes off, goes ahead, lands. Prints what its navdata reports."""

import sys
import time

import pyardrone
from pyardrone import at


class Drone(pyardrone.HelperMixin, pyardrone.ARDroneBase):
    """Drone without video, for which it needs OpenCV."""


drone = Drone(host=sys.argv[1])
assert drone.navdata_ready.wait(30), "no navdata"
while drone.state.navdata_bootstrap or not hasattr(drone.navdata, "demo"):
    drone.send(at.CONFIG("general:navdata_demo", True))
    time.sleep(0.1)
while drone.navdata.demo.altitude < 900:
    drone.takeoff()
    time.sleep(0.05)
print("flying", drone.navdata.demo.ctrl_state >> 16, flush=True)
forward = 0.0
for _ in range(40):
    drone.move(forward=0.5)
    time.sleep(0.05)
    forward = max(forward, drone.navdata.demo.vx)
while drone.state.fly_mask:
    drone.land()
    time.sleep(0.05)
print("landed", round(forward), flush=True)
drone.close()
