# SPDX-License-Identifier: Apache-2.0
"""Flies with PyPI's ardrone-sdk: takes off, goes ahead, lands. Prints what its navdata reports."""

import sys
import time

import ardrone


def flight():
    """Fly until it has landed."""
    drone = ardrone.ARDrone(host=sys.argv[1])
    while "demo" not in drone.navdata:
        time.sleep(0.05)
    while drone.navdata["demo"]["altitude"] < 900:
        drone.takeoff()
        time.sleep(0.05)
    print("flying", drone.navdata["demo"]["ctrl_state"], flush=True)
    drone.speed, forward = 0.5, 0.0
    for _ in range(40):
        drone.move_forward()
        time.sleep(0.05)
        forward = max(forward, drone.navdata["demo"]["vx"])
    while drone.navdata["state"]["fly"]:
        drone.land()
        time.sleep(0.05)
    print("landed", round(forward), flush=True)
    drone.halt()


if __name__ == "__main__":
    flight()
