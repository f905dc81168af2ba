# SPDX-License-Identifier: Apache-2.0
"""N emulated robots in one process, and a driver for each of their bridges: `fleet_robots.py N`.

Prints the robots' ports, and a line once a bridge is subscribed to each driver.
"""

import asyncio
import sys
import threading
import time

import rclpy
from geometry_msgs.msg import Twist
from nodes import ros

from drone_bridge.programs.program import say
from drone_bridge.robot.device import Control
from drone_bridge.robot.emulator import RobotEmulator, SimulatedRobot, TrackedRobot

DRIVE_RATE_HZ = 20.0
STEP_S = 0.05
SENSOR_PERIOD_S = 1.0


def serve(count: int, ports: list[int], ready: threading.Event) -> None:
    """Run the robots, forever."""

    async def serve_all() -> None:
        tasks = []
        for _ in range(count):
            robot = SimulatedRobot(TrackedRobot())
            server = RobotEmulator(robot, Control(robot, say), "127.0.0.1", 0, silence_s=2.0)
            await server.clients.start()
            ports.append(server.clients.port)
            tasks += [server.move(STEP_S, None), server.measure(SENSOR_PERIOD_S)]
        ready.set()
        await asyncio.gather(*tasks)

    asyncio.run(serve_all())


def main() -> int:
    """Serve and drive until SIGINT."""
    count = int(sys.argv[1])
    ports: list[int] = []
    ready = threading.Event()
    threading.Thread(target=serve, args=(count, ports, ready), daemon=True).start()
    ready.wait()
    print(*ports, flush=True)
    with ros(is_interrupted=True):
        node = rclpy.create_node("drivers")
        drivers = [node.create_publisher(Twist, f"/vehicle{number}/cmd_vel", 1) for number in range(count)]
        twist = Twist()
        twist.linear.x = 0.2
        is_announced = False
        due_s = time.monotonic()
        while True:
            for driver in drivers:
                driver.publish(twist)
            if not is_announced and all(driver.get_subscription_count() for driver in drivers):
                is_announced = True
                print("driven", flush=True)
            due_s += 1 / DRIVE_RATE_HZ
            time.sleep(max(0.0, due_s - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
