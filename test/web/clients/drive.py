# SPDX-License-Identifier: Apache-2.0
"""Client of rosbridge by roslibpy: drive.py PORT [hold] [goal]. It drives until it is killed, maybe by a goal."""

import sys
import time

import roslibpy

ros = roslibpy.Ros("127.0.0.1", int(sys.argv[1]))
ros.run()
hold = roslibpy.Service(ros, "/robot_bridge/hold", "std_srvs/SetBool")
for wanted in (True, False) if "hold" in sys.argv else ():
    try:
        print(f"hold {wanted}:", hold.call(roslibpy.ServiceRequest({"data": wanted}))["success"], flush=True)
    except Exception as error:  # roslibpy raises one without a class of its own
        print(f"hold {wanted}:", error, flush=True)
print(*sorted(ros.get_topics()), flush=True)
odom = roslibpy.Topic(ros, "/odom", "nav_msgs/Odometry", throttle_rate=500)
odom.subscribe(lambda message: print("odom", message["pose"]["pose"]["position"]["x"], flush=True))
if "goal" in sys.argv:
    far = roslibpy.Goal({"pose": {"pose": {"position": {"x": 100.0}}}})
    roslibpy.ActionClient(ros, "/go_to", "drone_bridge/action/GoTo").send_goal(far, print, print, print)
    time.sleep(1000.0)
wheel = roslibpy.Topic(ros, "/cmd_vel", "geometry_msgs/Twist")
while True:
    wheel.publish(roslibpy.Message({"linear": {"x": 0.3}}))
    time.sleep(0.05)
