# SPDX-License-Identifier: Apache-2.0
"""All bridges at once: does every topic arrive, at the expected rate?"""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import rclpy

from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.rates import ExpectedTopic, RateMeter

MEASURED_S: Final = 60.0
START_TIMEOUT_S: Final = 60.0
#: Less than this share of the expected rate is a failure.
ENOUGH: Final = 0.8
PORTS: Final = (
    "testbed_port",
    "dronegui_port",
    "dronegui_navdata_port",
    "simulator_port",
    "robot_port",
    "telemetry_port",
    "discovery_port",
)

IMAGE: Final = "sensor_msgs/msg/Image"
CAMERA_INFO: Final = "sensor_msgs/msg/CameraInfo"
CONTROLLER: Final = "drone_bridge/msg/ControllerState"
SENSOR_VALUE: Final = "drone_bridge/msg/SensorValue"
IMU: Final = "sensor_msgs/msg/Imu"
ODOMETRY: Final = "nav_msgs/msg/Odometry"
TWIST: Final = "geometry_msgs/msg/Twist"

#: Entities of the simulator's scene `buoys`, the vehicle aside.
ENTITIES: Final = ("buoy_red", "buoy_green", "buoy_yellow", "gate_left", "gate_right")
#: What comes at the rates that all.launch.xml sets, by the bridge or controller with its namespace; the
#: controllers' follow from them.
TOPICS: Final[dict[str, tuple[ExpectedTopic, ...]]] = {
    "testbed/testbed_bridge": (
        ExpectedTopic("/testbed/left/image_raw", IMAGE, 30.0),
        ExpectedTopic("/testbed/right/image_raw", IMAGE, 30.0),
        ExpectedTopic("/testbed/left/camera_info", CAMERA_INFO, 30.0),
        ExpectedTopic("/testbed/right/camera_info", CAMERA_INFO, 30.0),
        ExpectedTopic("/testbed/imu/data", IMU, 30.0),
        ExpectedTopic("/testbed/odom", ODOMETRY, 30.0),
        ExpectedTopic("/testbed/drone_properties", "drone_bridge/msg/DroneProperties"),
    ),
    "testbed/drone_controller": (
        ExpectedTopic("/testbed/cmd_rates", "drone_bridge/msg/CommandRates", 30.0),
        ExpectedTopic("/testbed/drone_controller/state", CONTROLLER, 30.0),
    ),
    "dronegui/dronegui_bridge": (
        ExpectedTopic("/dronegui/dronegui/state", "drone_bridge/msg/DroneGuiState", 20.0),
        ExpectedTopic("/dronegui/flying", "std_msgs/msg/Bool"),
        ExpectedTopic("/dronegui/odom", ODOMETRY, 15.0),
        ExpectedTopic("/dronegui/imu/data", IMU, 15.0),
        ExpectedTopic("/dronegui/velocity", "geometry_msgs/msg/TwistStamped", 15.0),
        ExpectedTopic("/dronegui/altitude", "sensor_msgs/msg/Range", 15.0),
        ExpectedTopic("/dronegui/battery_state", "sensor_msgs/msg/BatteryState", 15.0),
        ExpectedTopic("/dronegui/detections", "drone_bridge/msg/DetectionArray", 3.0),
    ),
    "dronegui/drone_controller": (ExpectedTopic("/dronegui/drone_controller/state", CONTROLLER, 20.0),),
    "simulator/simulator_bridge": (
        ExpectedTopic("/simulator/odom", ODOMETRY, 25.0),
        ExpectedTopic("/simulator/imu/data", IMU, 25.0),
        *(
            ExpectedTopic(f"/simulator/entities/{entity}/{what}", kind, 25.0)
            for entity in ENTITIES
            for what, kind in (("pose", "geometry_msgs/msg/PoseStamped"), ("twist", "geometry_msgs/msg/TwistStamped"))
        ),
        ExpectedTopic("/simulator/camera_view", "drone_bridge/msg/CameraView", 15.0),
    ),
    "simulator/drone_controller": (
        ExpectedTopic("/simulator/cmd_vel", TWIST, 20.0),
        ExpectedTopic("/simulator/drone_controller/state", CONTROLLER, 20.0),
    ),
    "robot/robot_bridge": (
        ExpectedTopic("/robot/odom", ODOMETRY, 20.0),
        ExpectedTopic("/robot/battery_state", "sensor_msgs/msg/BatteryState", 1.0),
        ExpectedTopic("/robot/temperature/left_motor", "sensor_msgs/msg/Temperature", 1.0),
        ExpectedTopic("/robot/temperature/right_motor", "sensor_msgs/msg/Temperature", 1.0),
        ExpectedTopic("/robot/current/left_motor", SENSOR_VALUE, 1.0),
        ExpectedTopic("/robot/current/right_motor", SENSOR_VALUE, 1.0),
        ExpectedTopic("/robot/motor_pwm/left_motor", SENSOR_VALUE, 1.0),
        ExpectedTopic("/robot/motor_pwm/right_motor", SENSOR_VALUE, 1.0),
        ExpectedTopic("/robot/sensors", "drone_bridge/msg/SensorArray"),
        ExpectedTopic("/robot/subsystems", "drone_bridge/msg/SubsystemArray"),
    ),
    "robot/rover_controller": (ExpectedTopic("/robot/cmd_vel", TWIST, 20.0),),
    "landing/telemetry_bridge": (
        ExpectedTopic("/landing/imu/data", IMU, 25.0),
        ExpectedTopic("/landing/height", "geometry_msgs/msg/PointStamped", 25.0),
        ExpectedTopic("/landing/velocity", "geometry_msgs/msg/TwistStamped", 25.0),
        ExpectedTopic("/landing/vertical_velocity", "std_msgs/msg/Float64", 25.0),
        ExpectedTopic("/landing/landing_pad", "drone_bridge/msg/LandingPad", 25.0),
        ExpectedTopic("/landing/camera/image_raw", IMAGE, 5.0),
        ExpectedTopic("/landing/camera/image_raw/compressed", "sensor_msgs/msg/CompressedImage", 5.0),
        ExpectedTopic("/landing/camera/camera_info", CAMERA_INFO, 5.0),
        ExpectedTopic("/landing/rover/odom", ODOMETRY, 12.5),
        ExpectedTopic("/landing/landed", "std_msgs/msg/Bool"),
    ),
    "landing/drone_controller": (
        ExpectedTopic("/landing/cmd_vel", TWIST, 25.0),
        ExpectedTopic("/landing/drone_controller/state", CONTROLLER, 25.0),
    ),
}


def show(folder: Path, duration_s: float = MEASURED_S) -> int:
    """Run all bridges, print the table, and return 0 if every topic arrived at its expected rate."""
    isolate_ros_graph()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "all.txt"
    began_s = time.monotonic()
    composition = Composition(
        "all.launch.xml", log, emulate=True, control=True, **{name: free_port() for name in PORTS}
    )
    rclpy.init()
    meter = RateMeter([topic for topics in TOPICS.values() for topic in topics])
    try:
        print(f"{len(TOPICS)} nodes and their peers start, and are then watched for {duration_s:g} s.", flush=True)
        meter.wait_for_all(START_TIMEOUT_S, lambda: composition.is_running)
        with Progress(total=round(duration_s)) as progress:
            watched_since_s = time.monotonic()

            def goes_on() -> bool:
                progress.show("watching", int(time.monotonic() - watched_since_s))
                return composition.is_running

            meter.measure(duration_s, goes_on)
    finally:
        meter.destroy_node()
        rclpy.shutdown()
        ended_well = composition.stop()
    took_s = time.monotonic() - began_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _print_table(list(rows_of(meter)))
    print(f"All of it used {(used.ru_utime + used.ru_stime) / took_s:.2f} processor cores, its start included.")
    problems = list(problems_of(meter))
    if not ended_well:
        problems.append(f"not all of it ended well; all that was printed is in {log}")
    for problem in problems:
        print(f"{problem[0].upper()}{problem[1:]}.", file=sys.stderr)
    return 1 if problems else 0


def rows_of(meter: RateMeter) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, header first."""
    yield "topic", "type", "expected", "measured", "dropped"
    for node, topics in TOPICS.items():
        dropped = meter.diagnostics.get(f"{node}: link", {}).get("dropped messages", "-")
        for topic in topics:
            if topic.rate_hz:
                rates = (f"{topic.rate_hz:.1f} Hz", f"{meter.rate_hz(topic):.1f} Hz")
            else:
                rates = ("latched", "came" if meter.counts[topic.name] else "missing")
            yield (topic.name, topic.type_name, *rates, dropped)


def problems_of(meter: RateMeter) -> Iterator[str]:
    """Yield a sentence for each topic that is missing or too slow."""
    for topic in (topic for topics in TOPICS.values() for topic in topics):
        if not meter.counts[topic.name]:
            yield f"{topic.name} did not come"
        elif topic.rate_hz and meter.rate_hz(topic) < ENOUGH * topic.rate_hz:
            yield f"{topic.name} came {meter.rate_hz(topic):.1f} times per second instead of {topic.rate_hz:g}"


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, kind, *numbers in rows:
        cells = [name.ljust(widths[0]), kind.ljust(widths[1])]
        cells += [number.rjust(width) for number, width in zip(numbers, widths[2:], strict=True)]
        print("  ".join(cells))
