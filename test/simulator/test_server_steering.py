# SPDX-License-Identifier: Apache-2.0
"""VelocityCommands of simulator_server: never a velocity that no client requests any more."""

import math
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_world import VEHICLE, ServedWorld

from drone_bridge.motion.quaternions import IDENTITY
from drone_bridge.motion.wxyz import conjugate, rotate
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import Attribute
from drone_bridge.simulator.topics import state_at
from drone_bridge.simulator.topics.services import state_fields
from drone_bridge.simulator.vehicle.session.velocity_commands import NEUTRAL

TIMEOUT_S = 0.5  # command_timeout
V, W = Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY
LEVEL, STANDING = (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
HELD = {"success": False, "message": "The vehicle is held, and its state is not set."}
DONE = {"success": True}
AT_REST = {**DONE, **state_fields(state_at(STANDING, IDENTITY), True)}


class Steered(ServedWorld):
    """Server with two clients, and the expected velocity of the vehicle.

    `wanted`: for v and w, the client that set it last and the value. Default: zero. `received_s`: time of each steering
    client's last command.
    """

    def __init__(self, bridge=True):
        super().__init__(parameters={"command_timeout": TIMEOUT_S})
        self.connect("bob")
        self.wanted, self.received_s = {}, {}
        self.numbers = count(1)
        self.have_bridge(bridge)

    def have_bridge(self, is_there, **responses):
        services = {"run": DONE, "pause": DONE, "set_entity_state": DONE, "get_entity_state": AT_REST, **responses}
        self.bridge.responses = services if is_there else {}

    def wait(self, seconds):
        """Advance the clock, and execute the session's actions."""
        for _ in range(10):
            self.run(seconds / 10)
            self.forget_silent()

    def forget_silent(self):
        if any(self.now_s - received_s >= TIMEOUT_S for received_s in self.received_s.values()):
            self.want_nothing()

    def want_nothing(self):
        self.wanted.clear()
        self.received_s.clear()

    def order(self, client, attribute, value=None):
        """Set an attribute by a client. Default: a velocity unique to the client."""
        value = (float(next(self.numbers)), 0.0, 0.0) if value is None else value
        self.forget_silent()
        answer = self.clients[client].ask(sim.SetEntity(VEHICLE, attribute, value))
        if attribute in (V, W):
            if isinstance(answer, sim.Ok):
                self.received_s[client] = self.now_s
                self.wanted[attribute] = value
            elif not self.is_known:  # it may have been executed
                self.received_s[client] = self.now_s
        return answer

    def part(self, client):
        """Disconnect a client, and connect a new one in its place."""
        leaving = self.clients[client]
        leaving.leave()
        if client in self.received_s:
            self.want_nothing()
        self.clients[client] = self.connect(f"{leaving.peer}'s")
        self.clients.pop()

    def want_running(self, is_running):
        self.clients[0].ask(sim.Run() if is_running else sim.Pause())
        if not is_running and not self.bridge.responses:
            self.want_nothing()

    def hold(self, is_held):
        super().hold(is_held)
        self.want_nothing()

    def commands_since(self, number):
        """Return the velocities published since then, as v and w."""
        return [(command.v, command.w) for command in self.commands[number:]]


def test_steering_by_a_service_may_continue_by_topics():
    """The server has just started, without a state of the vehicle."""
    world = Steered()
    assert world.order(0, V) == sim.Ok()
    world.move()
    assert world.order(0, W, (0.0, 0.0, 0.5)) == sim.Ok()
    assert world.commands_since(0)[-1] == ((1.0, 0.0, 0.0), (0.0, 0.0, 0.5))  # the v that the simulator has


@pytest.mark.parametrize("after_stall", [False, True])
def test_a_stall_of_the_server_is_not_reported_as_a_client_s_timeout(after_stall):
    world = Steered()
    world.move()
    world.order(0, V)
    world.now_s += 6.0
    world.do(world.session.resume if after_stall else world.session.tick)
    cause = "stalled" if after_stall else "timed out"
    assert cause in world.notes[-1].sentence
    assert world.commands[-1] == NEUTRAL


def turned(angle_rad):
    """Return the state of a vehicle at rest with a heading, rad to the east of north."""
    q = (math.cos(angle_rad / 2), 0.0, 0.0, math.sin(angle_rad / 2))
    return (STANDING, STANDING, STANDING, q, STANDING)


STEPS = st.one_of(
    st.tuples(st.just("order"), st.integers(0, 1), st.sampled_from(tuple(Attribute)[:5]), st.booleans()),
    st.tuples(st.just("order"), st.integers(0, 1), st.sampled_from((V, W)), st.booleans()),
    st.tuples(st.just("wait"), st.sampled_from((0.1, 0.3, 0.6, 5.0))),
    st.tuples(st.sampled_from(("move", "move", "run", "pause"))),
    st.tuples(st.just("move"), st.floats(-3.0, 3.0).map(turned)),
    st.tuples(st.just("part"), st.integers(0, 1)),
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
        if answer is None and not world.is_running:
            world.want_nothing()
    elif what in ("run", "pause"):
        world.want_running(what == "run")
    else:
        getattr(world, what)(*how)


def test_velocity_keeps_its_world_direction_while_the_vehicle_turns():
    world, rate_rad_s, period_s = Steered(), 0.8, 0.01
    world.move(turned(0.0))
    world.order(0, V)
    world.order(0, W, (0.0, 0.0, rate_rad_s))
    before = len(world.commands)
    for number in range(1, 40):
        world.run(period_s)
        state = turned(rate_rad_s * period_s * number)
        world.move(state)
        command = world.commands[-1]
        (x, y, _) = rotate(state[3], rotate(conjugate(command.q), command.v))  # which is in the body's axes
        assert abs(math.atan2(y, x)) < math.radians(1.5)
    assert set(world.commands_since(before)) == {((1.0, 0.0, 0.0), (0.0, 0.0, rate_rad_s))}
    assert len(world.commands_since(before)) < 20
    world.run(TIMEOUT_S)
    assert world.commands[-1] == NEUTRAL
    before = len(world.commands)
    world.move(turned(3.0))
    assert not world.commands_since(before)  # the client has been silent


def test_a_turn_rate_alone_is_not_published_again_while_the_vehicle_turns():
    world = Steered()
    world.move(turned(0.0))
    world.order(0, W, (0.0, 0.0, 1.0))
    before = len(world.commands)
    world.move(turned(1.0))
    assert not world.commands_since(before)


@given(st.lists(STEPS, max_size=25), st.booleans())
def test_for_any_sequence_of_requests_no_stale_velocity_is_published(steps, has_bridge):
    world = Steered(has_bridge)
    for step in steps:
        before = len(world.commands)
        do(world, *step)
        for v, w in world.commands_since(before):
            assert v in (STANDING, world.wanted.get(V, STANDING)), step
            assert w in (STANDING, world.wanted.get(W, STANDING)), step
    world.wait(TIMEOUT_S + 0.1)  # all are silent now
    assert not world.commands or world.commands[-1] == NEUTRAL
