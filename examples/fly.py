# SPDX-License-Identifier: Apache-2.0
"""Fly around a corner and land, with any drone that has odometry and a controller for goals; see docs/controllers.md.

First start, for instance: drone-bridge launch dronegui.launch.xml emulate:=true goals:=true
"""

import sys

try:
    import drone_bridge

    with drone_bridge.Vehicle() as drone:
        try:
            print(drone.take_off(1.0))
            print(drone.go_to(2.0, 0.0, 1.0))
            print(drone.go_to(2.0, 2.0, 1.5))
        except drone_bridge.VehicleError as error:  # for instance, another program commands it
            print(error)
        print(drone.land())
except ModuleNotFoundError:
    sys.exit("ROS 2 is not active in this shell: run '. env/activate' in the sources of drone_bridge first.")
except KeyboardInterrupt:  # the vehicle is held, as a sentence says
    sys.exit(130)
except drone_bridge.VehicleError as error:
    sys.exit(str(error))
