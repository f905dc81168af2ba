# SPDX-License-Identifier: Apache-2.0
"""Vehicle: the vehicle's end of a life, and the truth about it, by own decoding and own integration of motion."""

import math
from collections import deque
from typing import NamedTuple

from virtual_link import SERVER, Datagrams, Network, Streams
from virtual_time import Process

from drone_bridge.controllers.rover_controller import RoverController
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData


class Told(NamedTuple):
    """Velocity that a vehicle was told: m/s and rad/s in the axes of REP 103."""

    forward: float = 0.0
    left: float = 0.0
    up: float = 0.0
    turn: float = 0.0


ZERO = Told()


class Motion:
    """Own integration of planar motion: told velocities, reached with a lag of first order."""

    STEP_S = 0.02

    def __init__(self, life, lag_s=0.0):
        self._life, self._lag_s, self._then_s = life, lag_s, life.now_s
        self.x = self.y = self.heading = self.way = self.turned = 0.0
        self._told, self.speeds, self.changed_s, self.stops = ZERO, [0.0, 0.0, 0.0], life.now_s, 0
        self.is_blocked, self.blocked_s = False, -math.inf
        #: Speed of a wheel below which it is not measured, m/s, the way that odometry lacks so, and wheels' distance.
        self.slowest_m_s, self.unseen, self.axle_m = 0.0, 0.0, 1.0

    def tell(self, told):
        """Move until now as told before, and then as told now."""
        self.advance()
        if told != self._told:
            self._told, self.changed_s = told, self._life.now_s
            self.stops += told == ZERO

    def block(self, begins):
        """Let something be in its way, or no more."""
        self.advance()
        self.is_blocked, self.blocked_s = begins, self._life.now_s

    def advance(self):
        seconds, self._then_s = self._life.now_s - self._then_s, self._life.now_s
        wanted = self._told.forward, self._told.left, self._told.turn
        while seconds > 1e-9:
            if not any(wanted) and max(map(abs, self.speeds)) < 1e-9:
                return
            step_s = min(seconds, self.STEP_S)
            seconds -= step_s
            share = 1.0 - math.exp(-step_s / self._lag_s) if self._lag_s else 1.0
            self.speeds = [now + share * (then - now) for now, then in zip(self.speeds, wanted, strict=True)]
            if self.is_blocked:
                self.speeds[0] = min(0.0, self.speeds[0])
            forward, left, turn = self.speeds
            middle = self.heading + turn * step_s / 2
            self.x += step_s * (forward * math.cos(middle) - left * math.sin(middle))
            self.y += step_s * (forward * math.sin(middle) + left * math.cos(middle))
            self.heading += turn * step_s
            self.way += abs(step_s) * math.hypot(forward, left)
            self.turned += step_s * abs(turn)
            for half_m in (-self.axle_m / 2, self.axle_m / 2) if self.slowest_m_s else ():
                side, told = (each[0] + half_m * each[2] for each in (self.speeds, wanted))
                known = told if abs(told) < self.slowest_m_s else 0.0
                self.unseen += step_s * abs(side - known) * (abs(side) < self.slowest_m_s)


class Vehicle:
    """Base class of the kinds' vehicles. `told` is what the newest command on the wire says, by our own decoding."""

    name = ""
    #: Class of the bridge, its parameters, and its services: name to the bytes that the wire must have seen.
    bridge, parameters, requests = None, {}, {}
    is_stream, is_drone, flies_by_goals, has_odometry, has_last_words = True, False, False, True, True
    #: Its own wire, if any; and whether neutral is the command to hover.
    WIRE, HOVERS = None, False
    #: Calm time after which it is connected and drives, s, and the silence after which it stops by itself.
    RECONNECTS_S, watchdog_s = 15.0, math.inf
    #: Time for which an answer may be taken for that of an earlier request, whose own one was lost, s.
    ANSWERS_S = 0.0
    #: Time without a command after which a drone lands, s, and whether it stands.
    unattended_s, stands, height = math.inf, True, 0.0
    #: Place and heading of its body, if odometry shows that; whether its commands need reports.
    flown, NEEDS_REPORTS = None, True
    #: Whether it moves by itself, on request.
    cleans = False
    #: Lag of the emulated vehicle's velocity, s.
    LAG_S = 0.0
    #: Step of speeds on the wire, m/s or rad/s; and drift of odometry's heading, of the angle that it turns.
    QUANTUM, DRIFT = 0.01, 0.0
    #: Share and offset by which odometry may differ from the truth over a drive.
    ODOM_SHARE, ODOM_M, ODOM_RAD = 0.03, 0.06, 0.06
    #: Values of a user's velocities.
    speeds, turns = (-1.5, -0.7, 0.1, 0.3, 1.0), (-2.0, -0.2, 0.05, 0.5, 1.7)

    def __init__(self, life):
        self.life, self.network = life, Network(life)
        self.wire = (self.WIRE or (Streams if self.is_stream else Datagrams))(self.network, self.ports())
        self.network.tap = self._tap
        self.motion = Motion(life, self.LAG_S)
        self.told, self.told_s, self.packets = ZERO, -math.inf, 0
        #: Times and texts of what arrived.
        self.wire_log = deque(maxlen=10_000)
        self.is_on, self.process, self.runs = False, None, 0
        #: Limits of this life, m/s and m; 0: none.
        self.max_m_s, self.fence_m = life.rng.choice(((0.0, 0.0), (0.0, 0.0), (0.4, 0.0), (0.0, 6.0)))
        if not self.flies_by_goals:
            limits = {"limits.max_speed": self.max_m_s, "limits.fence_radius": self.fence_m}
            self.parameters = {**self.parameters, **{name: value for name, value in limits.items() if value}}

    # For the kinds.

    def ports(self):
        """Return the names of the client's further links, by port."""
        return {}

    def start(self):
        """Start the emulated vehicle in its process, on a new end of the wire."""
        raise NotImplementedError

    def hear(self, data, source):
        """Decode what arrives at the vehicle. Call `tell` with each velocity."""
        raise NotImplementedError

    def forget(self, source):
        """Handle the end of a connection, at which some vehicles stop."""

    def velocity(self, rng):
        """Return a velocity that a user may ask for."""
        values = Told(rng.choice(self.speeds), turn=rng.choice(self.turns))
        return rng.choice((values, values._replace(turn=0.0), values._replace(forward=0.0)))

    def request(self, name, flag):
        """Return a request of one of `requests`, and a function that returns why its success is not true, or ""."""
        raise NotImplementedError

    def body(self):
        """Return the velocity of the emulated body; None if it need not be as told."""

    #: Class and parameters of the controller of goals, if any.
    controller = RoverController, {}

    def untrue(self, name, fields, before):
        """Return why the success of a goal is not true, or "". `before` was the height at its beginning."""
        return ""

    def restless(self):
        """Return how a drone moves that nobody commands, or ""."""
        return ""

    @property
    def place(self):
        """Where it is, from its start, m: by what it was told, unless that is only a bound of its speed."""
        self.motion.advance()
        return self.motion.x, self.motion.y

    @property
    def rests(self):
        """Whether its body certainly rests."""
        self.motion.advance()
        return self.stands if self.is_drone else max(map(abs, self.motion.speeds)) < 1e-6

    def conditions(self):
        """Return the names of conditions that have a cause now, besides a hold."""
        return ("landing",) if self.is_drone else ()

    def allows(self, act):
        """Return whether an act of User makes sense."""
        if act in ("fly", "soar", "go", "tour"):
            return self.is_drone is (act not in ("go", "tour"))
        if act in ("lift", "share", "bump"):
            return hasattr(self, act)
        if act == "limit":
            return not self.flies_by_goals
        if act == "corridor":
            return not self.is_drone
        return act in self.requests if act == "clean" else self.requests or not act.startswith("request")

    def limited(self, asked):
        """Return a velocity within the limits, and then within the maxima."""
        share = min(1.0, self.max_m_s / (math.hypot(*asked[:3]) or 1.0)) if self.max_m_s else 1.0
        asked = asked._replace(forward=min(0.0, asked.forward)) if self.motion.is_blocked else asked
        return self.bounded(Told(*(share * each for each in asked[:3]), asked.turn))

    def bounded(self, asked):
        """Return what a calm vehicle must be told for a velocity that is asked of the bridge."""
        return asked

    def problem(self):
        """Return what can't be true of the vehicle, or ""."""
        return ""

    def roots(self):
        """Return further objects that must not grow."""
        return ()

    # For the harness.

    def tell(self, told):
        self.told, self.told_s = told, self.life.now_s
        self.motion.tell(told)

    def switch_on(self):
        self.process, self.is_on, self.runs = Process(self.life, f"{self.name} emulator"), True, self.runs + 1
        self.process.run(self.start)

    def switch_off(self, *, closes):
        """End the vehicle, whose motors then stand. `closes`: its system still closes its connections."""
        self.process.end()
        self.wire.remove(SERVER, closes=closes)
        self.is_on = False
        self.tell(ZERO)

    @property
    def is_moving(self):
        """Whether it moves by what it was told, unless its watchdog has stopped it."""
        return self.told != ZERO and self.life.now_s - self.told_s <= self.watchdog_s

    def _tap(self, side, event):
        if side != SERVER:
            return
        if isinstance(event, ReceivedData):
            self.packets += 1
            before = self.told
            self.hear(event.data, event.source)
            text = f"{self.told}" if self.told != before else repr(event.data)[:80]
            self.wire_log.append((self.life.lived_s, text))
        elif isinstance(event, Disconnected | Connected):
            self.forget(event.source)
