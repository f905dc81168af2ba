# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge as a process: what it asks for, what it publishes, how it steers."""

import itertools
import math

import pytest
from builtin_interfaces.msg import Time as BuiltinTime
from diagnostics import status, wait_for_count
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from processes import Process
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import module_ros, nanoseconds, wait_until
from rosgraph_msgs.msg import Clock
from simulator_fixtures import (
    BUOY,
    FRONT,
    NEAR,
    PARAMETERS,
    VEHICLE,
    call,
    shared_bridge,
    two_entities,
)
from simulator_peer import byte_by_byte
from std_srvs.srv import SetBool
from tf2_msgs.msg import TFMessage
from twists import twist

from drone_bridge import srv
from drone_bridge.msg import CameraView, ItemEvent, TriggerEvent
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute, ItemType

QUARTER = math.sqrt(0.5)
EAST = (QUARTER, 0.0, 0.0, QUARTER)
STOPPED = (0.0, 0.0, 0.0)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STEP_NUMBERS = itertools.count(1000.0)  # positions by which steps are told apart


ros = module_ros()
shared, peer = shared_bridge()


def near(*values):
    return pytest.approx(values, abs=1e-6)


def xyz(message):
    return message.x, message.y, message.z


def seen_after_steps(peer, inbox, values=None, stream=VEHICLE, wanted=lambda message: True):
    """Step until a message comes: whoever has just subscribed may not be known yet."""
    inbox.clear()
    wait_until(lambda: peer.step(peer.streams, values, stream) or len(inbox) > 0, "a message after a step")
    return inbox.wait(wanted)


# What it publishes.


def test_the_vehicles_state_becomes_odometry(ros, peer):
    odom = ros.subscribe(Odometry, "odom")
    message = seen_after_steps(
        peer,
        odom,
        {
            Attribute.POSITION: (1.0, 2.0, 3.0),
            Attribute.VELOCITY: (0.0, 5.0, 0.0),
            Attribute.ORIENTATION: EAST,
            Attribute.ANGULAR_VELOCITY: (0.0, 0.0, 0.5),
        },
    )
    assert (message.header.frame_id, message.child_frame_id) == ("s1/odom", "s1/base_link")
    assert xyz(message.pose.pose.position) == (2.0, 1.0, -3.0)
    assert message.pose.pose.orientation.w == pytest.approx(1.0)
    assert xyz(message.twist.twist.linear) == near(5, 0, 0)
    assert xyz(message.twist.twist.angular) == near(0, 0, -0.5)


def test_an_entity_has_topics_of_its_own(ros, peer):
    pose, twist = ros.subscribe(PoseStamped, "entities/buoy/pose"), ros.subscribe(TwistStamped, "entities/buoy/twist")
    values = {Attribute.POSITION: (1.0, 2.0, 3.0), Attribute.VELOCITY: (4.0, 0.0, 0.0)}
    message = seen_after_steps(peer, pose, values, BUOY)
    assert (message.header.frame_id, xyz(message.pose.position)) == ("s1/odom", (2.0, 1.0, -3.0))
    message = seen_after_steps(peer, twist, values, BUOY)
    assert (message.header.frame_id, xyz(message.twist.linear)) == ("s1/buoy", near(4, 0, 0))


def test_tf_has_everything(ros, peer):
    tf, static = ros.subscribe(TFMessage, "/tf", 100), ros.subscribe(TFMessage, "/tf_static", LATCHED)

    def step():
        peer.step(peer.streams, {Attribute.POSITION: (1.0, 2.0, 3.0)}, VEHICLE)
        peer.step(peer.streams, {Attribute.POSITION: (4.0, 5.0, 6.0)}, BUOY)
        return len(tf) > 10

    wait_until(step, "transforms")
    transforms = {}
    while len(transforms) < 2:
        for transform in tf.wait().transforms:
            transforms[transform.child_frame_id] = transform
    assert xyz(transforms["s1/base_link"].transform.translation) == (2.0, 1.0, -3.0)
    assert xyz(transforms["s1/buoy"].transform.translation) == (5.0, 4.0, -6.0)
    assert {transform.header.frame_id for transform in transforms.values()} == {"s1/odom"}
    latched = {t.child_frame_id: t for t in static.wait(lambda message: len(message.transforms) == 2).transforms}
    assert latched["s1/odom"].header.frame_id == "s1/map"
    assert latched["s1/front"].header.frame_id == "s1/base_link"
    assert xyz(latched["s1/front"].transform.translation) == (0.3, 0.0, 0.0)


def test_what_a_camera_sees_is_published(ros, peer):
    views = ros.subscribe(CameraView, "camera_view")
    wait_until(lambda: peer.streams.asked_for(sim.StreamCamera), "a stream of the camera")
    data = sim.CameraData(FRONT, 0.25, -0.5, 0.125, 4.0)
    wait_until(lambda: peer.send(peer.streams, data) or len(views), "a view")
    view = views.wait()
    assert (view.camera, view.camera_id, view.target, view.target_id) == ("front", FRONT, "buoy", BUOY)
    assert (view.x, view.y, view.radius, view.depth, view.visible) == (0.25, -0.5, 0.125, 4.0, True)
    assert view.header.frame_id == "s1/front"


def test_what_a_trigger_finds_is_published(ros, peer):
    events = ros.subscribe(TriggerEvent, "trigger_events")
    wait_until(lambda: peer.send(peer.streams, sim.PathFailed(NEAR)) or len(events), "an event")
    event = events.wait()
    assert (event.name, event.trigger_id, event.event) == ("near", NEAR, sim.PathFailed.ID)


def test_steps_drive_the_clock_which_stands_still_in_a_pause(ros, peer):
    clock, odom = ros.subscribe(Clock, "/clock"), ros.subscribe(Odometry, "odom")
    before = time_of_a_step(peer, peer.streams, odom)
    for _ in range(25):
        peer.step(peer.streams)
    clock.wait(lambda message: nanoseconds(message.clock) == before + 250_000_000)
    odom.wait(lambda message: nanoseconds(message.header.stamp) == before + 250_000_000)
    clock.clear()
    assert nanoseconds(clock.wait().clock) == before + 250_000_000  # told again, for those who have come meanwhile
    peer.step(peer.streams)
    assert nanoseconds(clock.wait(lambda m: nanoseconds(m.clock) != before + 250_000_000).clock) == before + 260_000_000


def time_of_a_step(peer, streams, odom):
    """Make a step that is the last one so far, and return its time."""
    wait_until(lambda: peer.step(streams) or len(odom), "odometry")
    number = next(STEP_NUMBERS)
    peer.step(streams, {Attribute.POSITION: (number, 0.0, 0.0)})
    return nanoseconds(odom.wait(lambda message: message.pose.pose.position.y == number).header.stamp)


# Entities that come and go.


def test_where_spying_closes_the_connection_entities_are_polled(ros, peer):
    events = ros.subscribe(ItemEvent, "item_events")
    wait_until(lambda: len(peer.requests_.asked_for(sim.ListEntities)) > 2, "lists of entities")
    wait_until(lambda: announced(peer, events), "an event")
    event = events.wait(lambda event: event.added)
    assert (event.type, event.name) == (ItemEvent.ENTITY, "")
    wait_until(lambda: set(peer.clients) == {peer.requests_, peer.streams}, "the end of the one that tried SPY")


def announced(peer, events):
    """Add and remove an entity, slower than they are listed."""
    number = max(peer.entities) + 1
    peer.entities[number] = peer.entities[0]
    lists = len(peer.requests_.asked_for(sim.ListEntities))
    wait_until(lambda: len(peer.requests_.asked_for(sim.ListEntities)) > lists + 1, "a list")
    del peer.entities[number]
    return len(events)


# Steering.


def velocities(peer):
    """The velocities that the vehicle was given: pairs of v and w."""
    sets = [s for s in peer.requests_.asked_for(sim.SetEntity) if s.attribute != Attribute.ORIENTATION]
    return list(zip((s.value for s in sets[::2]), (s.value for s in sets[1::2]), strict=False))


def steer_until(peer, publisher, message, linear, angular):
    def steer():
        publisher.publish(message)
        return any(v == near(*linear) and w == near(*angular) for v, w in velocities(peer))

    wait_until(steer, f"{linear}, {angular}")


def test_commands_become_velocities_where_the_vehicle_looks(ros, peer):
    publisher, odom = ros.publisher(Twist, "cmd_vel"), ros.subscribe(Odometry, "odom")
    steer_until(peer, publisher, twist(1.0, left_turn=0.5), (1, 0, 0), (0, 0, -0.5))  # before any step
    seen_after_steps(peer, odom, {Attribute.ORIENTATION: EAST})
    steer_until(peer, publisher, twist(1.0), (0, 1, 0), (0, 0, 0))
    stamped = ros.publisher(TwistStamped, "cmd_vel_stamped")
    message = TwistStamped(twist=twist(20.0))

    def steer():
        ros.publish_fresh(stamped, message)
        return any(v == near(0, 10, 0) for v, _ in velocities(peer))

    wait_until(steer, "the fastest that is allowed")


def test_deactivating_stops_the_vehicle_and_activating_asks_again(ros, peer):
    publisher = ros.publisher(Twist, "cmd_vel")
    # A command that stays fresh, or the vehicle would be stopped in any case.
    assert ros.set_parameters("simulator_bridge", command_timeout=60.0)[0].successful
    steer_until(peer, publisher, twist(1.0), (1, 0, 0), (0, 0, 0))
    requests = peer.requests_
    ros.transition("simulator_bridge", "deactivate")
    wait_until(lambda: not peer.clients, "the end of the connections")
    assert velocities(peer)[-1] == (STOPPED, STOPPED)
    assert requests.requests[-1] == sim.SetEntity(VEHICLE, Attribute.ANGULAR_VELOCITY, STOPPED)
    old = PARAMETERS["command_timeout"]
    assert ros.set_parameters("simulator_bridge", command_timeout=old)[0].successful
    ros.transition("simulator_bridge", "activate")
    peer.wait_until_settled()


# Services.


def test_a_spawned_entity_is_published_and_can_be_removed(ros, peer):
    response = call(ros, "spawn", srv.Spawn, name="Big Ball", mass=2.0, radius=0.5)
    assert (response.success, response.id, response.code) == (True, 2, -1), response.message
    pose = ros.subscribe(PoseStamped, "entities/big_ball/pose")
    wait_until(lambda: peer.step(peer.streams, stream=2) or len(pose), "its pose")
    assert list(call(ros, "list_entities", srv.ListEntities).names) == ["vehicle", "buoy", "big_ball"]
    assert call(ros, "remove", srv.RemoveItem, type=ItemType.ENTITY, id=2).success
    del peer.entities[2]
    wait_until(lambda: ros.node.count_publishers("/entities/big_ball/pose") == 0, "the end of its topics")


def test_a_refusal_has_the_simulators_code_and_what_it_means(ros, peer):
    peer.answers[sim.Remove] = sim.Error(0, "No such thing.")
    response = call(ros, "remove", srv.RemoveItem, type=ItemType.ENTITY, id=9)
    assert (response.success, response.code) == (False, 0)
    assert response.message == (
        "The simulator refused REMOVE with code 0: No such thing. "
        "This means that there is no item with the type and the ID."
    )
    invalid = call(ros, "spawn", srv.Spawn, mass=-1.0)
    assert (invalid.success, invalid.code) == (False, -1)
    assert invalid.message == "The mass is -1, and has to be finite and more than 0."


def test_on_hold_the_vehicle_is_not_moved_by_a_service(ros, peer):
    assert call(ros, "hold", SetBool, data=True).success
    try:
        refused = call(ros, "set_entity_state", srv.SetState, id=VEHICLE, set_position=True)
        assert "ESET is refused while the vehicle is held (the service hold was called)" in refused.message
    finally:
        assert call(ros, "hold", SetBool, data=False).success
    assert not [each for each in peer.requests(sim.SetEntity) if each.attribute == Attribute.POSITION]


def test_services_without_a_simulator_return_an_error(ros):
    with Process.node("simulator_bridge", remap=("__ns:=/lonely",), port=1) as process:
        process.wait_for_line("can't be reached")
        response = call(ros, "/lonely/pause", srv.SimulatorRequest)
    assert (response.success, response.message) == (False, "There is no connection to the simulator now.")


# The link.


def test_streams_and_requests_get_along_byte_by_byte(ros, peer):
    peer.split = byte_by_byte
    odom = ros.subscribe(Odometry, "odom")
    client = ros.client(srv.GetState, "simulator_bridge/get_entity_state")
    future = client.call_async(srv.GetState.Request(id=0))
    wait_until(lambda: peer.step(peer.streams) or future.done(), "the state", period_s=0.001)
    assert future.result().success, future.result().message
    odom.wait()
    assert {peer.requests_, peer.streams} <= set(peer.clients)


def test_garbage_is_counted_and_the_simulator_connected_to_again(ros, peer):
    before = status(ros)
    peer.send_bytes(peer.streams, b"\x0d\0\0\0\0")
    values = wait_for_count(ros, "rejected_input", 1, before)
    assert "The simulator sent a message of type 13, which it does not have." in values["last_error"]
    assert values["lost_connections"] == before["lost_connections"]
    wait_until(lambda: not {peer.requests_, peer.streams} & set(peer.clients), "the end of the connections")
    peer.wait_until_settled()
    assert call(ros, "reassure", srv.SimulatorRequest).success


def test_a_new_simulation_is_announced_and_one_that_goes_on_is_not(ros, peer):
    simulations = ros.subscribe(BuiltinTime, "simulation_started", LATCHED)
    wait_until(lambda: (VEHICLE, "drone_bridge.world") in peer.extended, "the simulation's mark")
    first = simulations.wait()
    peer.hang_up()
    requests, streams = peer.wait_until_settled()
    wait_until(lambda: streams.asked_for(sim.StreamCamera), "the stream of the camera")
    assert requests.asked_for(sim.AddCamera) == []
    peer.restart(entities=two_entities())
    assert nanoseconds(simulations.wait()) > nanoseconds(first) > 0
    assert not len(simulations)  # of the one that went on nothing was said


def test_diagnostics_have_rates_and_the_round_trip(ros, peer):
    def is_told(values):
        peer.step(peer.streams)
        streams = values.get("messages_per_second", "")  # of this connection, and not of the one before
        has_streams = streams.startswith("entity 0 ") and "front" in streams
        return has_streams and float(values.get("request_round_trip_ms", "inf")) < 1000.0

    values = status(ros, is_told)
    assert values["configuration"] == "100 steps per second, speed 1"
    assert values["item_events"] == "by asking every 0.1 s"
    assert {"steps_per_second", "stream_messages_per_second", "requests_per_second", "outstanding_requests"} <= set(
        values
    )
