# SPDX-License-Identifier: Apache-2.0
"""simulator_bridge as a process: what it asks for, what it publishes, how it steers."""

import contextlib
import itertools
import math
import threading
import time

import pytest
from diagnostics import status, wait_for_count
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import TIMEOUT_S, module_ros, nanoseconds, wait_until
from rosgraph_msgs.msg import Clock
from simulator_fixtures import (
    BUOY,
    FRONT,
    LEARNED,
    NEAR,
    PARAMETERS,
    VEHICLE,
    bridge,
    make_peer,
    shared_bridge,
    two_entities,
)
from simulator_peer import SILENCE, STREAMED, UPRIGHT
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


@pytest.fixture
def own_peer(closing):
    """A simulator for a bridge that a test starts."""
    return closing(make_peer())


def near(*values):
    return pytest.approx(values, abs=1e-6)


def xyz(message):
    return message.x, message.y, message.z


def seen_after_steps(peer, inbox, values=None, stream=VEHICLE, wanted=lambda message: True):
    """Step until a message comes: whoever has just subscribed may not be known yet."""
    inbox.clear()
    wait_until(lambda: peer.step(peer.streams, values, stream) or len(inbox) > 0, "a message after a step")
    return inbox.wait(wanted)


# What it asks for.


def test_requests_and_streams_have_connections_of_their_own(peer):
    wait_until(lambda: peer.requests_.asked_for(sim.AddCamera), "the camera")
    first = [type(request) for request in peer.requests_.requests[:11]]
    neutral, told = [sim.SetEntity] * 2, [*[sim.GetExtended] * 2, *[sim.GetEntity] * 5]
    assert first == [*neutral, sim.GetConfig, *told, sim.ListEntities]
    assert peer.requests_.asked_for(sim.AddCamera) == [sim.AddCamera(0, UPRIGHT, (0.3, 0.0, 0.0), 1.0)]
    asked = [request for request in peer.streams.requests if not isinstance(request, sim.StreamCamera)]
    assert asked == [
        sim.StreamEntity(VEHICLE, 1, STREAMED),
        sim.StreamEntity(BUOY, 1, STREAMED),
        sim.AddTrigger(sim.CollisionTrigger(0, 1, 0.5)),
        sim.Reassure(),
    ]
    wait_until(lambda: peer.streams.asked_for(sim.StreamCamera), "a stream of the camera")
    assert peer.streams.asked_for(sim.StreamCamera) == [sim.StreamCamera(FRONT, 2, BUOY)]


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


@pytest.mark.parametrize("kind", [sim.Triggered, sim.Untriggered, sim.PathStarted, sim.PathFailed, sim.PathEnded])
def test_what_a_trigger_finds_is_published(ros, peer, kind):
    events = ros.subscribe(TriggerEvent, "trigger_events")
    wait_until(lambda: peer.send(peer.streams, kind(NEAR)) or len(events), "an event")
    event = events.wait()
    assert (event.name, event.trigger_id, event.event) == ("near", NEAR, kind.ID)


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


def test_the_clock_does_not_run_back_when_the_simulator_starts_again(ros, peer):
    clock, odom = ros.subscribe(Clock, "/clock"), ros.subscribe(Odometry, "odom")
    for _ in range(10):
        peer.step(peer.streams)
    before = time_of_a_step(peer, peer.streams, odom)
    clock.wait(lambda message: nanoseconds(message.clock) == before)
    _, streams = peer.restart(entities=two_entities(), answers={sim.GetConfig: sim.Configured(50.0, 2.0, False, False)})
    base = time_of_a_step(peer, streams, odom)
    peer.step(streams)
    told = [before]
    while told[-1] < base + 40_000_000:
        told.append(nanoseconds(clock.wait().clock))
    assert told == sorted(told)
    assert told[-1] == base + 40_000_000


def time_of_a_step(peer, streams, odom):
    """Make a step that is the last one so far, and return its time."""
    wait_until(lambda: peer.step(streams) or len(odom), "odometry")
    number = next(STEP_NUMBERS)
    peer.step(streams, {Attribute.POSITION: (number, 0.0, 0.0)})
    return nanoseconds(odom.wait(lambda message: message.pose.pose.position.y == number).header.stamp)


def test_non_finite_states_and_unknown_streams_are_not_published(ros, peer):
    odom = ros.subscribe(Odometry, "odom")
    seen_after_steps(peer, odom)
    before = status(ros)
    peer.step(peer.streams, {Attribute.POSITION: (math.nan, 0.0, 0.0)})
    peer.step(peer.streams, {Attribute.ORIENTATION: (0.0, 0.0, 0.0, 0.0)})
    peer.step(peer.streams, stream=77)
    wait_for_count(ros, "bad numbers", 2, before)
    wait_for_count(ros, "unknown streams", 1, before)
    peer.step(peer.streams, {Attribute.POSITION: (7.0, 0.0, 0.0)})
    north = [odom.wait().pose.pose.position.y]
    while north[-1] != 7.0:
        north.append(odom.wait().pose.pose.position.y)
    assert set(north) <= {0.0, 7.0}
    assert {peer.requests_, peer.streams} <= set(peer.clients)


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


def test_an_entity_that_is_removed_here_is_announced_by_its_name(ros, peer):
    events = ros.subscribe(ItemEvent, "item_events")
    number = ros.call(srv.Spawn, "simulator_bridge/spawn", srv.Spawn.Request(name="float")).id
    wait_until(lambda: announced(peer, events), "an event")
    assert ros.call(
        srv.RemoveItem, "simulator_bridge/remove", srv.RemoveItem.Request(type=ItemType.ENTITY, id=number)
    ).success
    del peer.entities[number]
    event = events.wait(lambda event: not event.added and event.id == number)
    assert event.name == "float"


@pytest.mark.parametrize("id_bytes", [1, 4])
def test_where_spying_is_supported_it_is_used(ros, peer, id_bytes):
    events = ros.subscribe(ItemEvent, "item_events")
    _, streams = peer.restart(entities=two_entities(), closes_on=set())
    wait_until(lambda: streams.asked_for(sim.Spy), "spying")
    spied = sim.Spied(True, ItemType.ENTITY, 9, id_bytes)
    wait_until(lambda: peer.send(streams, spied) or len(events), "an event")
    event = events.wait()
    assert (event.added, event.type, event.id) == (True, ItemEvent.ENTITY, 9)
    peer.send(streams, sim.Spied(False, ItemType.CAMERA, 3, id_bytes))
    event = events.wait(lambda event: not event.added)
    assert (event.type, event.id) == (ItemEvent.CAMERA, 3)


def test_an_entity_that_was_missing_is_streamed_as_soon_as_it_comes(ros, peer):
    requests, streams = peer.restart(entities={VEHICLE: peer.entities[VEHICLE]})
    wait_until(lambda: len(requests.asked_for(sim.ListEntities)) > 1, "a list without the entity")
    asked = len(streams.asked_for(sim.StreamEntity))
    peer.entities[BUOY] = peer.entities[VEHICLE]
    wait_until(lambda: len(streams.asked_for(sim.StreamEntity)) > asked, "another request for the stream")
    assert streams.asked_for(sim.StreamEntity)[-1].id == BUOY


def test_an_entity_that_is_added_before_the_first_list_is_streamed_too(ros, peer):
    has_come = threading.Event()

    def list_late(_):
        assert has_come.wait(TIMEOUT_S)
        return sim.EntitiesListed(tuple(peer.entities))

    _, streams = peer.restart(entities={VEHICLE: peer.entities[VEHICLE]}, answers={sim.ListEntities: list_late})
    asked = len(streams.asked_for(sim.StreamEntity))
    events = ros.subscribe(TriggerEvent, "trigger_events")
    wait_until(lambda: peer.send(streams, sim.Triggered(77)) or len(events), "an event, later than the refusal")
    peer.entities[BUOY] = peer.entities[VEHICLE]
    has_come.set()
    wait_until(lambda: len(streams.asked_for(sim.StreamEntity)) > asked, "another request for the stream")
    assert [request.id for request in streams.asked_for(sim.StreamEntity)[asked:]] == [BUOY]


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


def test_stale_commands_stop_the_vehicle_which_is_then_left_alone(ros, peer):
    publisher = ros.publisher(Twist, "cmd_vel")
    began_s = time.monotonic()
    steer_until(peer, publisher, twist(1.0), (1, 0, 0), (0, 0, 0))
    wait_until(lambda: velocities(peer)[-1] == (STOPPED, STOPPED), "zero")
    wait_until(lambda: is_quiet(ros, peer), "quiet", period_s=0.2)
    assert time.monotonic() - began_s > PARAMETERS["command_timeout"] + PARAMETERS["release_after"]
    assert velocities(peer)[-2:] == 2 * [(STOPPED, STOPPED)]


def is_quiet(ros, peer, for_s=0.15):
    """Whether no velocity comes for so long, from a bridge that is at work and not kept from it."""
    settle(ros)
    count = len(velocities(peer))
    with contextlib.suppress(AssertionError):
        wait_until(lambda: len(velocities(peer)) > count, "a velocity", timeout_s=for_s)
    settle(ros)
    settle(ros)  # a velocity that is due comes with the request before at the latest
    return len(velocities(peer)) == count


def settle(ros):
    """Wait until the simulator has answered all that it was asked so far."""
    assert ros.call(srv.SimulatorRequest, "simulator_bridge/reassure", srv.SimulatorRequest.Request()).success


def test_a_vehicle_that_nobody_commands_is_left_alone(ros, peer):
    wait_until(lambda: is_quiet(ros, peer), "quiet", period_s=0.2)  # as another test may have commanded before
    before = len(velocities(peer))
    seen_after_steps(peer, ros.subscribe(Odometry, "odom"))
    assert is_quiet(ros, peer)
    assert len(velocities(peer)) == before


def test_velocities_come_at_the_rate_whatever_the_rate_of_commands(ros, peer):
    publisher = ros.publisher(Twist, "cmd_vel")
    steer_until(peer, publisher, twist(0.5), (0.5, 0, 0), (0, 0, 0))
    began_s = time.monotonic()
    commands_for_velocities(peer, publisher, 50, period_s=0.002)
    assert commands_for_velocities(peer, publisher, 50, period_s=0.2) < 50
    assert PARAMETERS["rate"] * (time.monotonic() - began_s) + 2 >= 100  # two may have been under way


def commands_for_velocities(peer, publisher, count, period_s):
    """Command with a period until so many velocities have come; return how many commands that took."""
    before = len(velocities(peer))
    published = []

    def steer():
        published.append(publisher.publish(twist(0.5)))
        return len(velocities(peer)) >= before + count

    wait_until(steer, "velocities", period_s=period_s)
    return len(published)


def test_a_stop_reaches_the_simulator_while_a_spawn_is_stalled_and_the_last_velocity_unanswered(ros, own_peer):
    with bridge(own_peer, remap=("__ns:=/stalled",), request_timeout=60.0, command_timeout=60.0):
        own_peer.requests_, _ = own_peer.wait_until_settled()
        publisher = ros.publisher(Twist, "/stalled/cmd_vel")
        steer_until(own_peer, publisher, twist(1.0), (1, 0, 0), (0, 0, 0))
        own_peer.answers[sim.AddEntity] = SILENCE  # with which all answers end
        client = ros.node.create_client(srv.Spawn, "/stalled/simulator_bridge/spawn")
        assert client.wait_for_service(TIMEOUT_S)

        def is_asked():
            """A bridge that has just stood still, as on a busy machine, is to be called again."""
            return own_peer.requests_.asked_for(sim.AddEntity) or not client.call_async(
                srv.Spawn.Request(name="stalled")
            )

        wait_until(is_asked, "the spawn", period_s=1.0)
        publisher.publish(twist(0.5))
        time.sleep(0.2)
        assert velocities(own_peer)[-1] != (STOPPED, STOPPED)
        wait_until(
            lambda: publisher.publish(twist(0.0)) or velocities(own_peer)[-1] == (STOPPED, STOPPED),
            "the stop, before any answer",
        )


def test_non_finite_commands_move_nothing(ros, peer):
    publisher = ros.publisher(Twist, "cmd_vel", qos=10)
    before = status(ros)
    for bad, reason in ((twist(math.nan), "linear.x is nan"), (twist(0.0, left_turn=math.inf), "angular.z is inf")):
        status(ros, lambda values, bad=bad, reason=reason: publisher.publish(bad) or reason in values["last error"])
    wait_for_count(ros, "refused commands", 2, before)
    assert set(velocities(peer)) <= {(STOPPED, STOPPED)}  # as another test may have commanded before


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


# Other parameters.


def test_how_principal_axes_lie_is_learned_while_paused_and_kept(ros, own_peer):
    own_peer.entities[VEHICLE][Attribute.ORIENTATION] = own_peer.btom = EAST
    with bridge(
        own_peer,
        frame_prefix="s4/",
        body_to_model=LEARNED,
        stream_period=3,
        triggers=[""],
        cameras=[""],
    ):
        _, streams = own_peer.wait_until_settled()
        key = "drone_bridge.btom"
        wait_until(lambda: (VEHICLE, key) in own_peer.extended, "what was learned")
        tf = ros.subscribe(TFMessage, "/tf", 100)
        # The model points north, along y of odom; the principal axes point east.
        assert model_yaw(own_peer, streams, tf) == near(0, 0, QUARTER, QUARTER)
        # Seen after the first step by somebody new: it is remembered in the world.
        own_peer.entities[VEHICLE][Attribute.VELOCITY] = (1.0, 0.0, 0.0)
        own_peer.hang_up()
        _, streams = own_peer.wait_until_settled()
        assert model_yaw(own_peer, streams, tf) == near(0, 0, QUARTER, QUARTER)
        assert streams.asked_for(sim.StreamEntity)[0] == sim.StreamEntity(VEHICLE, 1, (Attribute.CORPOREAL,))
        assert streams.asked_for(sim.StreamEntity)[1] == sim.StreamEntity(VEHICLE, 3, STREAMED)


def model_yaw(peer, streams, tf):
    """The orientation of s4/base_link when the wire says that the principal axes look east."""
    stream = 1 + 3 * (streams is not peer.first_streams) if hasattr(peer, "first_streams") else 1
    peer.first_streams = getattr(peer, "first_streams", streams)
    tf.clear()
    found = []

    def is_there():
        peer.step(streams, {Attribute.ORIENTATION: EAST}, stream)
        found.extend(t for _ in range(len(tf)) for t in tf.wait().transforms if t.child_frame_id == "s4/base_link")
        return found

    wait_until(is_there, "the vehicle's transform")
    q = found[-1].transform.rotation
    return q.x, q.y, q.z, q.w
