# SPDX-License-Identifier: Apache-2.0
"""What all.launch.xml starts, protocol by protocol: the one declaration for demonstration and tests.

A sixth protocol is one more System here; a test then says what all.launch.xml and the docs still lack.
"""

from dataclasses import dataclass
from typing import Final

from drone_bridge.tools.demo.rates import ExpectedTopic

IMAGE: Final = "sensor_msgs/msg/Image"
CAMERA_INFO: Final = "sensor_msgs/msg/CameraInfo"
CONTROLLER: Final = "drone_bridge/msg/ControllerState"
SENSOR_VALUE: Final = "drone_bridge/msg/SensorValue"
IMU: Final = "sensor_msgs/msg/Imu"
TWIST_STAMPED: Final = "geometry_msgs/msg/TwistStamped"
ODOMETRY: Final = "nav_msgs/msg/Odometry"
TWIST: Final = "geometry_msgs/msg/Twist"

#: Entities of the simulator's scene `buoys`, the vehicle aside.
ENTITIES: Final = ("buoy_red", "buoy_green", "buoy_yellow", "gate_left", "gate_right")


@dataclass(frozen=True, slots=True)
class System:
    """One protocol in all.launch.xml."""

    name: str  # its namespace, and its launch file is <name>.launch.xml
    model: str  # the vehicle model that rviz and the page show
    ports: tuple[str, ...]  # the arguments of all.launch.xml that choose its ports
    nodes: dict[str, tuple[ExpectedTopic, ...]]  # by node: what it publishes, at the rates that all.launch.xml sets


def _odometry_and_imu(rate_hz: float) -> tuple[ExpectedTopic, ...]:
    return ExpectedTopic("odom", ODOMETRY, rate_hz), ExpectedTopic("imu/data", IMU, rate_hz)


#: The rates of the controllers follow from those of the bridges.
SYSTEMS: Final = (
    System(
        name="testbed",
        model="drone",
        ports=("testbed_port",),
        nodes={
            "testbed_bridge": (
                *(ExpectedTopic(f"{side}/image_raw", IMAGE, 30.0) for side in ("left", "right")),
                *(ExpectedTopic(f"{side}/camera_info", CAMERA_INFO, 30.0) for side in ("left", "right")),
                *_odometry_and_imu(30.0),
                ExpectedTopic("drone_properties", "drone_bridge/msg/DroneProperties"),
            ),
            "drone_controller": (
                ExpectedTopic("cmd_rates", "drone_bridge/msg/CommandRates", 30.0),
                ExpectedTopic("drone_controller/state", CONTROLLER, 30.0),
            ),
        },
    ),
    System(
        name="dronegui",
        model="drone",
        ports=("dronegui_port", "dronegui_navdata_port"),
        nodes={
            "dronegui_bridge": (
                ExpectedTopic("dronegui/state", "drone_bridge/msg/DroneGuiState", 20.0),
                ExpectedTopic("flying", "std_msgs/msg/Bool"),
                *_odometry_and_imu(15.0),
                ExpectedTopic("velocity", TWIST_STAMPED, 15.0),
                ExpectedTopic("altitude", "sensor_msgs/msg/Range", 15.0),
                ExpectedTopic("battery_state", "sensor_msgs/msg/BatteryState", 15.0),
                ExpectedTopic("detections", "drone_bridge/msg/DetectionArray", 3.0),
            ),
            "drone_controller": (ExpectedTopic("drone_controller/state", CONTROLLER, 20.0),),
        },
    ),
    System(
        name="simulator",
        model="submarine",
        ports=("simulator_port",),
        nodes={
            "simulator_bridge": (
                *_odometry_and_imu(25.0),
                *(
                    ExpectedTopic(f"entities/{entity}/{what}", kind, 25.0)
                    for entity in ENTITIES
                    for what, kind in (
                        ("pose", "geometry_msgs/msg/PoseStamped"),
                        ("twist", TWIST_STAMPED),
                    )
                ),
                ExpectedTopic("camera_view", "drone_bridge/msg/CameraView", 15.0),
            ),
            "drone_controller": (
                ExpectedTopic("cmd_vel", TWIST, 20.0),
                ExpectedTopic("drone_controller/state", CONTROLLER, 20.0),
            ),
        },
    ),
    System(
        name="robot",
        model="rover",
        ports=("robot_port", "discovery_port"),
        nodes={
            "robot_bridge": (
                ExpectedTopic("odom", ODOMETRY, 20.0),
                ExpectedTopic("battery_state", "sensor_msgs/msg/BatteryState", 1.0),
                *(
                    ExpectedTopic(f"{what}/{motor}", kind, 1.0)
                    for motor in ("left_motor", "right_motor")
                    for what, kind in (
                        ("temperature", "sensor_msgs/msg/Temperature"),
                        ("current", SENSOR_VALUE),
                        ("motor_pwm", SENSOR_VALUE),
                    )
                ),
                ExpectedTopic("sensors", "drone_bridge/msg/SensorArray"),
                ExpectedTopic("subsystems", "drone_bridge/msg/SubsystemArray"),
            ),
            "rover_controller": (ExpectedTopic("cmd_vel", TWIST, 20.0),),
        },
    ),
    System(
        name="landing",
        model="drone",
        ports=("telemetry_port",),
        nodes={
            "telemetry_bridge": (
                ExpectedTopic("imu/data", IMU, 25.0),
                ExpectedTopic("height", "geometry_msgs/msg/PointStamped", 25.0),
                ExpectedTopic("velocity", TWIST_STAMPED, 25.0),
                ExpectedTopic("vertical_velocity", "std_msgs/msg/Float64", 25.0),
                ExpectedTopic("landing_pad", "drone_bridge/msg/LandingPad", 25.0),
                ExpectedTopic("camera/image_raw", IMAGE, 5.0),
                ExpectedTopic("camera/image_raw/compressed", "sensor_msgs/msg/CompressedImage", 5.0),
                ExpectedTopic("camera/camera_info", CAMERA_INFO, 5.0),
                ExpectedTopic("rover/odom", ODOMETRY, 12.5),
                ExpectedTopic("landed", "std_msgs/msg/Bool"),
            ),
            "drone_controller": (
                ExpectedTopic("cmd_vel", TWIST, 25.0),
                ExpectedTopic("drone_controller/state", CONTROLLER, 25.0),
            ),
        },
    ),
)
#: By node with its namespace, all topics with their full names.
TOPICS: Final[dict[str, tuple[ExpectedTopic, ...]]] = {
    f"{system.name}/{node}": tuple(topic._replace(name=f"/{system.name}/{topic.name}") for topic in topics)
    for system in SYSTEMS
    for node, topics in system.nodes.items()
}
