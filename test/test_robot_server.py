# SPDX-License-Identifier: Apache-2.0
"""robot_server as a process, between real drivers and real DDS."""

import contextlib
import math
import socket
import subprocess
import sys

import pytest
from geometry_msgs.msg import Twist
from networks import two_machines
from ports import free_port
from processes import Process, executable
from rcl_interfaces.msg import Log
from robot_driver import RobotDriver
from ros_session import module_ros, wait_until
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Bool

from drone_bridge.msg import SensorValue
from drone_bridge.robot import codec

HEADLIGHT, REAR, TRACKS = 0, 1, 2  # in the list of ARGUMENTS
SENSORS = "['battery_state','temperature/left_motor','current/left_motor','motor_pwm/m1=left PWM']"
ARGUMENTS = {
    "port": 0,
    "robot_name": "shelly",
    "wheel_separation": 0.4,
    "max_wheel_speed": 2.0,
    "lights": "['headlight','Rear light']",
    "sensors": SENSORS,
    "full_voltage": 24.0,
    "command_timeout": 30.0,  # a driver whose test is held up is not to be taken for silent
    "driver_timeout": 0.0,
    "log_nodes": "['/painter']",
}
LISTENING = r"Waiting for drivers on 127\.0\.0\.1:(\d+)"


ros = module_ros()


@contextlib.contextmanager
def serving(namespace="", **parameters):
    """A server as a process, with the port that drivers connect to. Beside the shared one it needs a namespace."""
    parameters = {**ARGUMENTS, "discovery_port": free_port(), **parameters}
    remap = [f"__ns:=/{namespace}"] if namespace else ()
    with Process.node("robot_server", remap=remap, **parameters) as server:
        server.port = int(server.wait_for_line(LISTENING)[1])
        server.discovery_port = parameters["discovery_port"]
        yield server


@pytest.fixture(scope="module")
def shared():
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def shared_commands(shared, ros):
    inbox = ros.subscribe(Twist, "cmd_vel")
    wait_until(lambda: ros.node.count_publishers("/cmd_vel"), "a publisher of cmd_vel")
    return inbox


@pytest.fixture
def commands(shared, shared_commands):
    """What the shared server publishes from now on. Its former drivers are gone."""
    with RobotDriver(shared.port) as driver:
        wait_until(lambda: not any(subsystem.driver for subsystem in driver.list_subsystems()), "a free robot")
    shared_commands.clear()
    return shared_commands


@pytest.fixture
def connect(closing):
    return lambda server, name=None: closing(RobotDriver(server.port, name))


def hear(driver, sensor, publisher, message):
    """Publish until the driver has a value of the sensor: what is published first may reach nobody yet."""
    before = len(driver.events)

    def values():
        publisher.publish(message)
        driver.settle()
        updates = [event for event in driver.events[before:] if isinstance(event, codec.SensorUpdate)]
        return [reading for update in updates for reading in update.readings if reading.sensor == sensor]

    return wait_until(values, f"a value of sensor {sensor}", period_s=0.1)[-1].value


def test_lights_are_switched_each_on_its_topic(shared, commands, connect, ros):
    head, rear = ros.subscribe(Bool, "light"), ros.subscribe(Bool, "light/rear_light")
    wait_until(lambda: ros.node.count_publishers("/light/rear_light"), "a publisher of light/rear_light")
    driver = connect(shared, "alice")
    driver.bind(HEADLIGHT)
    driver.bind(REAR)

    def switched():
        driver.send(codec.LightUpdate(HEADLIGHT, True), codec.LightUpdate(REAR, False))
        return len(head) and len(rear)

    wait_until(switched, "both lights", period_s=0.1)
    assert head.wait().data
    assert not rear.wait().data


def test_values_of_sensors_go_out_once_each_and_unknown_ones_are_listed_as_null(shared, commands, connect, ros):
    driver = connect(shared, "alice")
    listed = driver.query()[0]
    assert [sensor.type for sensor in listed.sensors] == [0, 0, 0, 0, 0]  # nothing was said yet; and no right motor
    battery = ros.publisher(BatteryState, "battery_state")
    temperature = ros.publisher(Temperature, "temperature/left_motor")
    current = ros.publisher(SensorValue, "current/left_motor")
    pwm = ros.publisher(SensorValue, "motor_pwm/m1")
    assert hear(driver, 0, battery, BatteryState(voltage=24.125)) == 24125
    anew = next(event for event in driver.events[::-1] if isinstance(event, codec.SensorInfo))  # before the values
    assert (anew.sensors[0].type, anew.sensors[0].name, anew.sensors[0].value) == (1, "battery", 24125)
    assert anew.sensors[0].full_voltage_mv == 24000
    assert hear(driver, 1, temperature, Temperature(temperature=-3.25)) == -325
    assert hear(driver, 2, current, SensorValue(value=1.5)) == 1500
    assert hear(driver, 3, pwm, SensorValue(value=-0.5)) == -1024

    def is_unknown():
        battery.publish(BatteryState(voltage=math.nan))
        return driver.query_sensors().sensors[0].type == 0

    wait_until(is_unknown, "a battery without a value", period_s=0.1)
    driver.events.clear()
    driver.settle()
    assert not any(isinstance(event, codec.SensorUpdate) for event in driver.events)


def test_logs_of_nodes_become_the_robot_s_log(shared, commands, connect, ros):
    driver = connect(shared)
    driver.settle()
    rosout = ros.publisher(Log, "/rosout", qos=10, subscribers=1)
    message = Log(name="painter", msg="The paint is\nout.", level=Log.WARN)

    def heard():
        rosout.publish(Log(name="stranger", msg="none of theirs", level=Log.WARN))
        rosout.publish(message)
        driver.settle()
        return [event.text for event in driver.events if isinstance(event, codec.LogMessage)]

    lines = wait_until(heard, "a line of the log", period_s=0.1)
    assert set(lines) == {"[painter] The paint is\\nout."}


# As robotd's Java driver asks, through the interface of the default route, and goes to wherever the answer comes from.
# Once more each second, as a robot that has just stood still drops what it was asked meanwhile.
FIND = """
import socket, sys
own, group, discovery_port, port, seconds = sys.argv[1:]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(1.0)
    asking.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own))
    for _ in range(int(seconds)):
        asking.sendto(b"find robots", (group, int(discovery_port)))
        try:
            name, source = asking.recvfrom(256)
            break
        except TimeoutError:
            pass
    else:
        sys.exit("nobody")
with socket.create_connection((source[0], int(port)), float(seconds)) as driving:
    driving.sendall(bytes.fromhex("000002"))
    print(name.decode(), driving.recv(3).hex())
"""
FOUND = ["shelly", "000a07"]  # and what its answer to a query begins with: the list of sensors


def test_drivers_on_this_machine_find_it_by_any_route_and_others_only_if_configured():
    def find(machine, address, seconds):
        arguments = (address, "238.160.102.2", 25601, 25600, seconds)
        command = machine.command(sys.executable, "-c", FIND, *arguments)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    parameters = ("robot_name:=shelly", "lights:=['none']", "sensors:=['none']")
    to_others = ("discovery_interface:=0.0.0.0", "host:=0.0.0.0")
    with two_machines() as (here, elsewhere):

        def serve(*more):
            options = [part for parameter in (*parameters, *more) for part in ("-p", parameter)]
            return Process(*here.command(executable("robot_server"), "--ros-args", *options))

        with serve() as server:
            server.wait_for_line(LISTENING)
            found = find(here, here.address, 10)
            assert found.stdout.split() == FOUND, found.stderr
            assert find(here, "127.0.0.1", 10).stdout.split() == FOUND
            assert find(elsewhere, elsewhere.address, 1).stderr.strip() == "nobody"
            assert find(here, here.address, 10).stdout.split() == FOUND  # which is still there
        with serve(*to_others) as server:
            server.wait_for_line("Waiting for drivers on 0.0.0.0:")
            found = find(elsewhere, elsewhere.address, 10)
            assert found.stdout.split() == FOUND, found.stderr


def test_beside_a_robotd_it_goes_on_without_discovery(connect):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as robotd:  # which shares its port with nobody
        robotd.bind(("0.0.0.0", 0))
        with serving("beside", discovery_port=robotd.getsockname()[1]) as server:
            server.wait_for_line(r"WARN.*Drivers do not find this robot: .*in use.*launch argument discovery_port")
            connect(server, "alice").bind(TRACKS)
