# SPDX-License-Identifier: Apache-2.0
"""What simulator_server publishes on cmd_vel of what clients set: never what none of them wants any more."""

from itertools import count

import pytest
from geometry_msgs.msg import Twist
from hypothesis import given, settings
from hypothesis import strategies as st
from served_world import VEHICLE, ServedWorld

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics import Axes, EntityState
from drone_bridge.simulator.topics.services import state_fields

TIMEOUT_S = 0.5  # command_timeout
V, W = Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY
LEVEL, STANDING = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
HELD = {"success": False, "message": "The vehicle is held, and its state is not set."}
DONE = {"success": True}
STATE = EntityState((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), IDENTITY, (0.0, 0.0, 0.0))


class WireAxes(Axes):
    """Leaves everything as it is on the wire."""

    def world(self, x, y, z):
        return x, y, z

    body = world

    def orientation(self, q):
        w, x, y, z = q
        return Quaternion(x, y, z, w)

    def wire_orientation(self, q):
        return q.w, q.x, q.y, q.z

    rotation, wire_rotation = orientation, wire_orientation


class Steered(ServedWorld):
    """With two clients, axes as on the wire, and what is wanted of the vehicle by what is known of its clients.

    `wanted`: for v and w, the client that set it last and the value; without one it is zero. `heard_s`: when each
    client that steers was heard last.
    """

    def __init__(self, bridge=True):
        super().__init__(WireAxes())
        self.clients = [self.session, self.connect()]
        self.wanted, self.heard_s = {}, {}
        self.numbers = count(1)
        self.control.run(0)
        self.have_bridge(bridge)

    def have_bridge(self, is_there, **responses):
        self.bridge.responses = {"run": DONE, "pause": DONE, "set_entity_state": DONE, **responses} if is_there else {}
        self.bridge.are_lost = not is_there
        if is_there:
            self.bridge.responses["get_entity_state"] = {"success": True, **state_fields(STATE, True)}
        self.forwarder.has_bridge = is_there
        self.forwarder.stop_if_paused()

    def hear_state(self):
        self.scene.update_time()
        self.scene.update(VEHICLE, STATE)

    def wait(self, seconds):
        """Let time pass, in which the node ticks, and publishes what it has to say."""
        for _ in range(10):
            self.now_s += seconds / 10
            self.forget_silent()
            self.scene.update_time()
            self.flush()

    def forget_silent(self):
        if any(self.now_s - heard_s >= TIMEOUT_S for heard_s in self.heard_s.values()):
            self.want_nothing()

    def want_nothing(self):
        self.wanted.clear()
        self.heard_s.clear()

    def order(self, client, attribute, value=None):
        """Have a client set something; a velocity of its own kind if no value is given."""
        value = (float(next(self.numbers)), 0.0, 0.0) if value is None else value
        self.session = self.clients[client]
        self.forget_silent()
        answer = self.ask(sim.SetEntity(VEHICLE, attribute, value))
        if attribute in (V, W):
            if isinstance(answer, sim.Ok):
                self.heard_s[client] = self.now_s
                self.wanted[attribute] = value
            elif self.scene.state(VEHICLE) is None:  # it may have been carried out
                self.heard_s[client] = self.now_s
        return answer

    def leave(self, client):
        self.commands.leave(self.clients[client])
        if client in self.heard_s:
            self.want_nothing()
        self.flush()

    def want_running(self, is_running):
        self.ask(sim.Run() if is_running else sim.Pause())
        if not is_running and not self.forwarder.has_bridge:
            self.want_nothing()

    def hold(self, is_held):
        self.node.hold.set(is_held)
        self.want_nothing()
        self.flush()

    def commands_since(self, number):
        """What was published since then, as v and w on the wire."""
        twists = [message for _, message in self.node.published[number:]]
        return [(numbers(twist.linear), numbers(twist.angular)) for twist in twists]


def numbers(vector):
    return vector.x, vector.y, vector.z


def test_a_turn_rate_of_before_a_pause_is_not_sent_again():
    """Steered by v and w, silent, paused until nothing is known of the vehicle, then steered by v alone."""
    world = Steered()
    world.hear_state()
    world.order(0, V)
    world.order(0, W, (0.0, 0.0, 0.5))
    world.order(0, V, STANDING)
    world.wait(TIMEOUT_S)
    world.want_running(False)
    world.wait(5.0)
    world.order(0, V)
    world.want_running(True)
    world.hear_state()
    before = len(world.node.published)
    world.order(0, V, (0.25, 0.0, 0.0))
    assert world.commands_since(before) == [((0.25, 0.0, 0.0), STANDING)]


def test_who_begins_by_a_service_may_go_on_by_topics():
    """Of a server that was just started, and knows nothing of the vehicle yet."""
    world = Steered()
    assert world.order(0, V) == sim.Ok()
    world.hear_state()
    assert world.order(0, W, (0.0, 0.0, 0.5)) == sim.Ok()
    assert world.commands_since(0)[-1] == ((1.0, 0.0, 0.0), (0.0, 0.0, 0.5))  # the v that the simulator has


@pytest.mark.parametrize("by_service", [False, True])
def test_the_order_of_a_client_that_left_is_not_sent_again_by_another_s(by_service):
    world = Steered()
    if not by_service:
        world.hear_state()
    world.order(0, V)
    world.order(1, W, (0.0, 0.0, 0.5))
    world.hear_state()
    before = len(world.node.published)
    world.leave(0)
    world.order(1, W, (0.0, 0.0, 0.5))
    assert world.commands_since(before) == [(STANDING, STANDING), (STANDING, (0.0, 0.0, 0.5))]


def test_the_order_of_a_client_that_is_silent_ends_though_another_steers():
    world = Steered()
    world.hear_state()
    world.order(0, V)
    for _ in range(2):
        world.wait(0.6 * TIMEOUT_S)
        world.hear_state()
        world.order(1, W, (0.0, 0.0, 0.5))
    v, w = (1.0, 0.0, 0.0), (0.0, 0.0, 0.5)
    assert world.commands_since(0) == [(v, STANDING), (v, w), (STANDING, STANDING), (STANDING, w)]


@pytest.mark.parametrize("stood_still", [False, True])
def test_a_client_is_not_blamed_for_the_time_in_which_the_server_stood_still(stood_still):
    world = Steered()
    world.hear_state()
    world.order(0, V)
    world.commands.is_settling = lambda: stood_still
    said = []
    world.node.inform = said.append
    world.now_s += 6.0
    world.commands.tick()
    cause = "This process stood still" if stood_still else "A client that steered has been silent for a while"
    assert said == [f"{cause}: the vehicle is stopped."]


@pytest.mark.parametrize("response", [HELD, None])
def test_what_a_service_refused_or_did_not_answer_is_not_sent_later(response):
    world = Steered()
    world.have_bridge(True, set_entity_state=response)
    assert isinstance(world.order(0, V), sim.Error)
    world.hear_state()
    world.order(0, W, (0.0, 0.0, 0.5))
    assert world.commands_since(0) == [(STANDING, (0.0, 0.0, 0.5))]


STEPS = st.one_of(
    st.tuples(st.just("order"), st.integers(0, 1), st.sampled_from(tuple(Attribute)[:5]), st.booleans()),
    st.tuples(st.just("order"), st.integers(0, 1), st.sampled_from((V, W)), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from((0.1, 0.3, 0.6, 5.0))),
    st.tuples(st.sampled_from(("hear_state", "hear_state", "run", "pause"))),
    st.tuples(st.just("leave"), st.integers(0, 1)),
    st.tuples(st.just("hold"), st.booleans()),
    st.tuples(st.just("bridge"), st.sampled_from((None, DONE, HELD))),
)


def do(world, what, *how):
    if what == "order":
        client, attribute, is_zero = how
        value = (LEVEL if attribute == Attribute.ORIENTATION else STANDING) if is_zero else None
        if attribute == Attribute.ORIENTATION and not is_zero:
            value = (0.5, 0.5, 0.5, 0.5)
        world.order(client, attribute, value)
    elif what == "bridge":
        (answer,) = how
        world.have_bridge(answer is not None, set_entity_state=answer)
        if not world.forwarder.has_bridge and not world.control.is_running:
            world.want_nothing()
    elif what in ("run", "pause"):
        world.want_running(what == "run")
    else:
        getattr(world, what)(*how)


@settings(max_examples=200)
@given(st.lists(STEPS, max_size=25), st.booleans())
def test_whatever_clients_set_in_whatever_order_nothing_old_is_commanded(steps, has_bridge):
    world = Steered(has_bridge)
    for step in steps:
        before = len(world.node.published)
        do(world, *step)
        world.flush()
        for v, w in world.commands_since(before):
            assert v in (STANDING, world.wanted.get(V, STANDING)), step
            assert w in (STANDING, world.wanted.get(W, STANDING)), step
    world.wait(TIMEOUT_S + 0.1)  # all are silent now
    assert not world.node.published or world.node.published[-1][1] == Twist()
