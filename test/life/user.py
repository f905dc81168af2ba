# SPDX-License-Identifier: Apache-2.0
"""User: ordinary activities of a vehicle's owner, and of the programs and the page that he uses."""

import math
from types import SimpleNamespace

from geometry_msgs.msg import Twist, TwistStamped
from intent import CMD_VEL, STAMPED
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_srvs.srv import SetBool
from vehicle import ZERO, Told
from virtual_ros import Publisher

from drone_bridge.msg import HoldWish
from drone_bridge.ros.time import time_from_seconds

RATE_HZ = 20.0
#: Time for which the user waits for an answer, s.
PATIENCE_S = 5.0
#: Rounding errors, with the smallest float.
TINY = 0.0, 5e-324, 1e-310, -1e-300, -1e-12, 1e-7


class User:
    """Acts of people. Each act ends with nothing that commands the vehicle, and no hold."""

    #: Weights of the acts.
    ACTS = {  # noqa: RUF012
        "drive": 14, "corridor": 2, "tiny": 2, "stop": 2, "rest": 4, "hold": 5, "wish": 3, "nudge": 3,
        "late": 2, "nonsense": 2, "request": 5, "requests": 2, "watch": 2, "walk_away": 0.2, "fly": 10, "soar": 10,
        "hold_goal": 3, "go": 4, "tour": 6, "lift": 3, "bump": 6, "clean": 3, "limit": 2,
    }  # fmt: skip

    def __init__(self, home):
        self._home, self._life, self._acts = home, home.life, home.acts
        self._rng, self._intent, self._vehicle = home.acts.rng, home.intent, home.vehicle
        page = SimpleNamespace(graph=home.graph)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._wishes = Publisher(page, HoldWish, home.topic("~/hold_wish"), latched)
        self._weights = {name: weight for name, weight in self.ACTS.items() if home.vehicle.allows(name)}
        if home.is_healthy:
            self._weights = {name: self.ACTS[name] for name in ("drive", "rest", "fly", "soar")}
        #: Time of the last act.
        self.acted_s = self._life.now_s

    def live(self):
        """Do one act after another."""
        yield 5.0
        weights = self._weights
        while not self._acts.have_ended:
            if not self._home.is_healthy and self._rng.random() < 0.07:  # for some time, he prefers these
                weights = self._acts.swarm(self._weights)
            name = self._rng.choices([*weights], [*weights.values()])[0]
            self._acts.begin("user", name)
            yield from getattr(self, name)()
            yield from self._resumed()
            self.acted_s = self._life.now_s
        while True:
            yield from self._resumed()
            yield 60.0

    # Commands.

    def velocity(self):
        return self._vehicle.velocity(self._rng)

    def stream(self, topic, velocity, seconds, *, age_s=0.0, rate=RATE_HZ, counts=True):
        """Publish a velocity for a time. With `counts` it is valid."""
        self._acts.say(f"   {topic} {velocity} for {seconds:.2f} s")
        self._home.pilot.reached = None
        if seconds > 3.0:
            self._acts.play(self._home.watched(seconds, "/odom"))
        twist = Twist()
        twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = velocity
        for _ in range(max(1, round(seconds * rate))):
            message = twist
            if topic != CMD_VEL:
                message = TwistStamped(twist=twist)
                message.header.stamp = time_from_seconds(1_800_000_000.0 + self._life.now_s - age_s)
            self._home.graph.publish(self._home.topic(topic), message)
            self.acted_s = self._life.now_s
            if counts and self._home.bridge.process.is_alive:
                self._intent.command(velocity)
            yield 1.0 / rate

    def drive(self):
        for _ in range(self._rng.choice((1, 2, 4))):
            yield from self.stream(CMD_VEL, self.velocity(), self._rng.uniform(0.5, 10.0))
        yield self._rng.choice((0.0, 1.0, 6.0))

    def corridor(self):
        """Drive straight on for long."""
        ahead = self.velocity()._replace(turn=0.0)
        yield from self.stream(CMD_VEL, ahead, self._rng.choice((20.0, 60.0)))
        yield 6.0

    def limit(self):
        """Set the maximum speed, as by `ros2 param set`, and drive."""
        while self._intent.is_commanded or not self._home.is_bridge_up:
            yield 0.5
        speed, bridge = self._rng.choice((0.0, 0.2, 0.6)), self._home.bridge
        self._vehicle.max_m_s, limit = speed, Parameter("limits.max_speed", value=speed)
        self._vehicle.parameters = {**self._vehicle.parameters, limit.name: speed}
        bridge.process.run(lambda: bridge.set_parameters([limit]))
        yield from self.drive()

    def tiny(self):
        """Rounding errors of a controller."""
        yield from self.stream(CMD_VEL, Told(*(self._rng.choice(TINY) for _ in ZERO)), 2.0)
        yield 5.0

    def nudge(self):
        """A single command, as by `ros2 topic pub --once`."""
        yield from self.stream(self._rng.choice((CMD_VEL, STAMPED)), self.velocity(), 0.01)
        yield 4.0

    def stop(self):
        yield from self.stream(CMD_VEL, self.velocity(), 2.0)
        yield from self.stream(CMD_VEL, ZERO, self._rng.uniform(0.1, 2.0))

    def late(self):
        """Commands that were under way for long, or come from a clock ahead."""
        yield from self.stream(STAMPED, self.velocity(), 3.0, age_s=self._rng.choice((0.6, 3.0, -5.0)), counts=False)
        yield 1.0

    def nonsense(self):
        """Commands that are refused. The newest message replaces one that waits, so they do not meet valid ones."""
        while self._intent.is_commanded:
            yield 0.5
        bad = Told(self._rng.choice((math.nan, math.inf, -math.inf)), turn=0.3)
        yield from self.stream(CMD_VEL, bad, 1.0, counts=False)
        yield 2.0

    # Rests.

    def rest(self):
        yield self._rng.choice((3.0, 10.0, 30.0, 90.0, 240.0))

    def walk_away(self):
        yield 3600.0

    # Hold.

    def hold(self):
        """Hold in the middle of a drive, which the program goes on with, and resume later."""
        yield from self._held_drive(self._call_hold())

    def wish(self):
        """The same by STOP on the page."""
        yield from self._held_drive(self._wish())

    def lift(self):
        """Lift it while it drives, put it down, and resume it."""
        self._acts.play(self.stream(CMD_VEL, self.velocity(), 20.0))
        yield self._rng.uniform(0.5, 3.0)
        is_certain = self._home.nature.calm_s > 60.0
        self._vehicle.lift(True)
        self._intent.hold(None)
        yield 3.0
        if is_certain and self._home.nature.calm_s > 60.0:
            self._intent.hold(True)
        yield self._rng.choice((1.0, 10.0))
        self._vehicle.lift(False)
        yield 1.0
        for _ in range(2):
            yield 2.0
            self._intent.hold(None)  # late reports may hold it again
            yield from self._resumed()

    def bump(self):
        """Let it run against something while it drives, and make way."""
        self._acts.play(self.stream(CMD_VEL, self.velocity(), 12.0))
        yield self._rng.uniform(0.5, 3.0)
        self._vehicle.bump(True)
        yield self._rng.uniform(1.0, 6.0)
        self._vehicle.bump(False)
        yield 8.0

    def clean(self):
        """Let it move by itself for a while."""
        self._home.request("clean", True)
        yield self._rng.choice((10.0, 90.0))

    def _held_drive(self, hold):
        held_s = self._rng.choice((1.0, 10.0, 120.0))
        self._acts.play(self.stream(CMD_VEL, self.velocity(), held_s + 5.0))
        yield self._rng.uniform(0.0, 3.0)
        yield from hold
        yield held_s
        yield from self._resumed()
        yield self._rng.uniform(0.0, 3.0)

    def _call_hold(self):
        while not (yield from self._set_held(True)):
            yield 1.0

    def _wish(self):
        """Publish a wish, which the page keeps until the bridge confirms it."""
        self._intent.hold(None)
        self._wishes.publish(HoldWish(id=f"{self._acts.number}", reason="a person pressed STOP"))
        yield 0.05
        while not self._home.is_bridge_up:
            yield 0.5
        self._intent.hold(True, by_person=True)

    def _resumed(self):
        """Resume, again and again until it succeeds."""
        while self._intent.held is not False:
            if not (yield from self._set_held(False)):
                yield 1.0

    def _set_held(self, held):
        """Call the service hold. Return whether it is certain that it succeeded."""
        self._intent.hold(None)

        def answered(response):
            if response and response.success:
                self._intent.hold(held)

        self._home.graph.call(self._home.topic("~/hold"), SetBool.Request(data=held), answered)
        for _ in range(round(PATIENCE_S / 0.02)):
            if self._intent.held is held:
                if not held:
                    self._wishes.publish(HoldWish())  # as the page does once it sees the resume
                return True
            yield 0.02
        return False

    # Goals.

    def fly(self):
        """The README's first flight, and its parts in other orders."""
        goals = [("take_off", {"height": self._rng.choice((1.0, 1.5, 0.0))})]
        for _ in range(self._rng.randrange(3)):
            to = self._rng.uniform(-3, 3), self._rng.uniform(-3, 3), self._rng.uniform(0.7, 3.0)
            goals.append(("go_to", {"to": tuple(round(each, 2) for each in to)}))
        is_success = yield from self._home.pilot.follow(*goals, ("land", {}))
        yield self._rng.choice((1.0, 5.0, 90.0))
        if not is_success:
            yield from self._home.pilot.follow(("land", {}))

    def go(self):
        """Send a rover somewhere, and let it rest there."""
        to = round(self._rng.uniform(-3, 3), 2), round(self._rng.uniform(-3, 3), 2), 0.0
        yield from self._home.pilot.follow(("go_to", {"to": to}))
        yield 5.0

    def tour(self):
        """Go through several places, and rest at the last one."""
        places = [(round(self._rng.uniform(-2, 2), 2), round(self._rng.uniform(-2, 2), 2), 0.0) for _ in range(3)]
        yield from self._home.pilot.follow(("follow_path", {"to": places[-1], "through": places}))
        yield 5.0

    def soar(self):
        """Fly by hand, and let go."""
        yield from self._home.pilot.follow(("take_off", {"height": 1.5}))
        for _ in range(self._rng.choice((1, 2, 4))):
            yield from self.stream(CMD_VEL, self.velocity(), self._rng.choice((1.5, 5.0, 15.0)))
            yield self._rng.choice((0.0, 0.0, 8.0))
        yield self._rng.choice((3.0, 90.0, 180.0))

    def hold_goal(self):
        """Hold during a goal, in flight or of a rover, and resume."""
        to = ("go_to", {"to": (self._rng.choice((-4.0, 3.0)), 0.0, 2.0 * self._vehicle.is_drone)})
        goals = (("take_off", {"height": 2.0}), to) if self._vehicle.is_drone else (to,)
        self._acts.play(self._home.pilot.follow(*goals))
        yield self._rng.uniform(0.0, 12.0)
        by = self._rng.choice((self._call_hold, self._wish))
        yield from by()
        yield 2.0
        flies = not self._vehicle.stands and self._vehicle.phase not in self._vehicle.LANDING
        held_s = self._rng.choice((0.0, 20.0, 120.0))
        yield held_s
        is_calm = self._home.nature.calm_s > held_s + self._vehicle.RECONNECTS_S
        if by == self._wish and flies and is_calm and self._vehicle.stands:
            self._life.fault("held", "a drone that a person held in the air has landed")
        yield from self._resumed()
        yield 10.0

    # Requests, and the page.

    def request(self):
        name = self._rng.choice([*self._vehicle.requests])
        for _ in range(self._rng.choice((1, 1, 3))):  # he presses it again if nothing happens
            self._home.request(name, self._rng.random() < 0.5)
            yield self._rng.uniform(0.0, 10.0)

    def requests(self):
        """Several at once, in odd moments: while it drives, and while another one is answered."""
        self._acts.play(self.stream(CMD_VEL, self.velocity(), 3.0))
        for _ in range(self._rng.choice((2, 5))):
            yield from self.request()

    def watch(self):
        """Look at the page, which subscribes to the vehicle's topics."""
        yield from self._home.watched(self._rng.choice((0.5, 3.0, 20.0)))
