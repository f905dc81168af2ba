# SPDX-License-Identifier: Apache-2.0
"""Actors: several at once, each with a clock of his own: programs, people at the helm and at STOP, a program of goals.

Bridge and controller stall and start anew amid these. Actors come by chance, and after each round all leave. `Truth`
judges.
"""

import math
from types import SimpleNamespace

from geometry_msgs.msg import Twist, TwistStamped
from intent import CMD_VEL, HELM, STAMPED, Intent
from page_servers import Host, Page
from page_truth import PageTruth
from pilot import request_of
from rclpy.qos import QoSProfile
from std_srvs.srv import SetBool
from truth import Source, Truth
from user import User
from vehicle import ZERO
from virtual_ros import ActionGoal, Publisher, VirtualNode
from virtual_time import EPOCH_S

from drone_bridge.msg import PilotCommand
from drone_bridge.ros.time import time_from_seconds

PILOT = "~/pilot"
KINDS_OF_TOPICS = {CMD_VEL: Twist, STAMPED: TwistStamped, HELM: TwistStamped, PILOT: PilotCommand}
#: Clocks of machines against the bridge's, s.
OFFSETS_S = (0.0, 0.0, 0.0, 0.05, 0.2, -0.2, 0.7, -0.7, 2.0, -2.0)
#: Mean time until the next one comes, s, their greatest number, the length of a round, and for how long all leave.
COMES_S, MOST, ROUND_S, LEAVE_S = 5.0, 4, (120.0, 400.0), (5.0, 110.0)


class Nobody(Intent):
    """Intent that is not known: the rules for a single actor don't apply."""

    def _wanted(self):
        self.held = None

    def command(self, velocity):
        pass


class Actors(User):
    """Acts of several actors."""

    COMES = {  # noqa: RUF012
        "program": 10, "person": 2, "page": 7, "stop": 2, "call_hold": 1, "resume": 6, "goal": 4, "restart_bridge": 0.7,
        "kill_bridge": 0.7, "stall_bridge": 2, "restart_controller": 0.5, "kill_server": 0.5, "stall_server": 0.5,
    }  # fmt: skip
    #: Of these, there is any number at a time.
    MANY = "program", "page", "resume"

    def __init__(self, home):
        super().__init__(home)
        self.truth, self._present, self._numbers = Truth(home), [], 0
        self._leaves = False
        has_goals = home.vehicle.controller is not None
        self._comes = {name: weight for name, weight in self.COMES.items() if has_goals or name != "goal"}
        topic = home.topic("cmd_vel_stamped")
        self._hosts = [Host(home, "robot's server", 0.0), Host(home, "laptop's server", self._offset_s())]
        self._pages = [Page(home.life, self._hosts[name == "Cleo"], name, topic) for name in ("Anna", "Bert", "Cleo")]
        self.truth.pages = PageTruth(home, self.truth, self._hosts, self._pages)

    def live(self):
        yield 5.0
        while not self._acts.have_ended:
            weights, self._leaves = self._acts.swarm(self._comes), False
            until_s = self._life.now_s + self._rng.uniform(*ROUND_S)
            yield from self.resume()
            while self._life.now_s < until_s and not self._acts.have_ended:
                yield self._rng.expovariate(1.0 / COMES_S)
                able = {n: w for n, w in weights.items() if n in self.MANY or n not in self._present}
                if len(self._present) >= MOST or not any(able.values()):
                    continue
                name = self._rng.choices([*able], [*able.values()])[0]
                if self.truth.rests and self._rng.random() < 0.5:
                    name = "resume"
                self._acts.begin("actors", name)
                self._acts.play(self._come(name))
            self._leaves = True
            self._acts.say("   all leave")
            while self._present:
                yield 0.5
            yield self._rng.choice(LEAVE_S)
        while True:
            yield 60.0

    def _come(self, name):
        self._present.append(name)
        self.acted_s = self._life.now_s
        yield from getattr(self, name)()
        self._present.remove(name)

    # Programs, and people at a stick.

    def publish(self, name, topic, rate, parts, offset_s=0.0):
        """Publish parts, (velocity, seconds), as a node of its own on a machine whose clock is off by so much."""
        graph, life, kind = self._home.graph, self._life, KINDS_OF_TOPICS[topic]
        self._numbers += 1
        source = Source(f"{name}_{self._numbers}", HELM if topic == PILOT else topic, offset_s)
        node = SimpleNamespace(graph=graph, get_name=lambda: source.name)
        full = self._home.topic(topic)
        publisher = Publisher(node, kind, full, QoSProfile(depth=1))
        for velocity, seconds in parts:
            self._acts.say(
                f"   {source.name} {topic} {velocity} for {seconds:.1f} s at {rate:g} Hz, clock {offset_s:+} s"
            )
            twist = Twist()
            twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = velocity
            until_s = life.now_s + seconds
            while life.now_s < until_s and not (self._leaves and source.topic != HELM):
                message = twist if topic == CMD_VEL else kind(twist=twist)
                if topic != CMD_VEL:
                    message.header.stamp = time_from_seconds(EPOCH_S + life.now_s + offset_s)
                if topic == PILOT:
                    message.id = message.name = name
                publisher.publish(message)
                self.truth.published(source, velocity)
                yield 1.0 / rate * self._rng.uniform(0.9, 1.1)
        graph.publishers[full].remove(publisher)
        self.truth.ended_s[source.name] = life.now_s
        self._acts.say(f"   {source.name} ends")

    def _offset_s(self):
        return self._rng.choice(OFFSETS_S) if self._life.seed >= 0 else 0.0  # the clocks of a negative seed agree

    def program(self):
        topic, rate = self._rng.choice((CMD_VEL, CMD_VEL, CMD_VEL, STAMPED)), self._rng.choice((5.0, 10.0, 20.0, 50.0))
        some = self.velocity(), self.velocity(), self.velocity(), ZERO
        number = self._rng.choice((1, 1, 3))
        parts = [(self._rng.choice(some), self._rng.choice((1.0, 5.0, 12.0, 40.0))) for _ in range(number)]
        yield from self.publish("program", topic, rate, parts, self._offset_s())

    def person(self):
        """A person takes the helm by a stick without a name."""
        some, rate = (ZERO, self.velocity(), self.velocity()), self._rng.choice((10.0, 20.0))
        number = self._rng.choice((1, 2, 4))
        parts = [(self._rng.choice(some), self._rng.choice((0.05, 0.5, 3.0, 8.0))) for _ in range(number)]
        yield from self.publish("person", HELM, rate, parts, self._offset_s())
        yield self._rng.choice((0.5, 2.0, 8.0))

    # People at pages.

    def page(self):
        """A person takes the helm on a page, steers, and leaves it in one of the ways in which people do."""
        free = [page for page in self._pages if not page.is_busy and page.is_fresh]
        if not free:
            return
        page = self._rng.choice(free)
        page.is_busy = True
        yield from self._taken(page)
        for _ in range(self._rng.choice((1, 2, 4))):
            if not page.is_pilot or self._leaves:
                break
            axis = self._rng.choice(("x", "x", "yaw"))
            page.stick = self._rng.choice(({}, {axis: 0.4}, {axis: -0.3}, {axis: 1.0}))
            self._acts.say(f"   {page.name} {page.stick}")
            yield self._rng.choice((0.3, 2.0, 6.0))
            if self._rng.random() < 0.2:
                yield from self._lost(page, self._rng.choice((0.2, 0.7, 2.0, 8.0)))
            if page.is_pilot and page.vehicle["asked"]:
                yield from self._answered(page)
        leave = self._rng.choice(("release", "close", "lose"))
        self._acts.say(f"   {page.name}: {leave}")
        if leave == "lose":
            yield from self._lost(page, 8.0)
        elif leave == "close":
            page.close()
        page.stick = {}
        page.request("release")
        yield self._rng.choice((0.1, 2.0, 8.0))
        page.is_busy = False

    def _taken(self, page):
        """Take the helm; if somebody else has it, perhaps ask for it, and take it if there is no answer."""
        self._acts.say(f"   {page.name} of the {page.host.name} takes the helm")
        is_free = page.vehicle and page.vehicle["pilot"] is None and self.truth.helm_last_s < self._life.now_s - 3.0
        page.take()
        yield 0.5
        if is_free and page.state and page.state[0] is None and self.truth.pages.is_certain(page):
            self.truth.find("x taken", "", f"{page.name} takes a free helm, and has {page.state}: {page.reason!r}")
        if page.vehicle and page.vehicle["pilot"] == "other" and self._rng.random() < 0.5:
            self._acts.say(f"   {page.name} asks")
            page.request("ask", vehicle=page.topic)
            until_s = self._life.now_s + 10.5
            while not page.is_pilot and self._life.now_s < until_s:
                yield 0.2
            page.take()
            yield 0.5

    def _answered(self, page):
        hands_over = self._rng.random() < 0.5
        self._acts.say(f"   {page.name} {'hands over' if hands_over else 'keeps'}")
        if hands_over:
            page.request("hand_over", to=page.vehicle["asked"][0]["number"])
        else:
            page.request("keep")
        yield 0.5

    def _lost(self, page, seconds):
        self._acts.say(f"   {page.name} has no network for {seconds} s")
        page.cut(seconds)
        yield seconds + 0.5
        if self._rng.random() < 0.5:
            page.stick = {}

    def kill_server(self):
        host = self._rng.choice(self._hosts)
        if host.is_up:
            self._acts.say(f"   the {host.name}")
            host.kill()
            yield self._rng.choice((0.5, 5.0))
            host.start()

    def stall_server(self):
        host = self._rng.choice(self._hosts)
        host.process.stall(self._rng.choice((0.3, 1.0, 3.0)))
        yield 4.0

    # People and programs that hold.

    def stop(self):
        """A person presses STOP on a page, which repeats it."""
        page, pressed_s = self._rng.choice(self._pages), self._life.now_s
        self._acts.say(f"   {page.name}: STOP")
        self.truth.asking += 1
        page.stop(stops_all=self._rng.random() < 0.3)
        while page.stop_number is not None and self._life.now_s < pressed_s + 20.0:
            yield 0.1
        while not self._home.is_bridge_up:
            yield 0.1
        yield 0.5
        self.truth.asking -= 1
        is_through = page.stop_number is None and self._home.bridge_up_s > 0.4 and page.host.up_s < pressed_s
        if is_through and not self.truth.asking and self.truth.resumed_s < pressed_s:
            self.truth.stopped(by_person=True)
            for each in self._pages:
                each.must_let_go = any(each.stick.values())
        yield self._rng.choice((0.1, 3.0, 20.0))

    def call_hold(self):
        """A program calls the service."""
        self._acts.say("   hold")
        answers, truth = [], self.truth
        self._home.graph.call(self._home.topic("~/hold"), SetBool.Request(data=True), answers.append)
        truth.asking += 1
        yield 0.5
        truth.asking -= 1
        is_held = answers and answers[0] and answers[0].success
        if is_held and not truth.asking and self._life.now_s - truth.resumed_s > 0.6:
            truth.stopped(by_person=False)
        yield self._rng.choice((0.1, 3.0, 20.0))

    def resume(self):
        """A person resumes it, on a page or by the service."""
        page, answers, until_s = self._rng.choice(self._pages), [], self._life.now_s + 12.0
        self.truth.asking += 1
        if page.is_fresh and self._rng.random() < 0.6:
            self._acts.say(f"   {page.name} resumes")
            page.request("resume", vehicle=page.topic)
            is_free = False
            for _ in range(10):
                yield 0.3
                if is_free := page.is_fresh and page.vehicle and not page.vehicle["held"]:
                    break
            success, text = is_free or None, page.state
        else:
            self._home.graph.call(self._home.topic("~/hold"), SetBool.Request(data=False), answers.append)
            while not answers and self._life.now_s < until_s:
                yield 0.05
            success, text = (answers[0].success, answers[0].message) if answers and answers[0] else (None, "")
        self.truth.resumed(success)
        self._acts.say(f"   resume: {success} {text}")

    def goal(self):
        """A program sends goals, and stays open for a while."""
        vehicle, life, graph, truth = self._vehicle, self._life, self._home.graph, self.truth
        to = tuple(round(self._rng.uniform(-2, 2), 2) for _ in range(2))
        goals = [("take_off", {"height": 1.5})] if vehicle.is_drone else []
        self._home.intent.is_goal_open, graph.action_clients = True, 1
        truth.goal_s, truth.is_reached = life.now_s, False
        for name, fields in (*goals, ("go_to", {"to": (*to, 1.5 if vehicle.is_drone else 0.0)})):
            if not (server := graph.actions.get(f"/{name}")):
                break
            self._acts.say(f"   goal {name} {fields}")
            goal, until_s = ActionGoal(request_of(name, fields)), life.now_s + 40.0
            server.send(goal)
            controller = self._home.controller
            while goal.result is None and life.now_s < until_s + 5.0:
                goal.is_cancel_requested = life.now_s > until_s or self._leaves
                yield 0.1
            self._acts.say(f"   {name}: {goal.status}: {goal.result and goal.result.message}")
            if goal.result is None and self._home.controller is controller:
                truth.find("xiii goals end", name, "it has no outcome")
            truth.is_reached = goal.status == "succeeded"
            if not truth.is_reached:
                break
        stay_s = life.now_s + self._rng.choice((0.0, 10.0, 30.0))
        while life.now_s < stay_s and not self._leaves:
            yield 0.5
        graph.action_clients, truth.goal_s = 0, math.inf
        truth.goal_end_s = self._home.asked_s = life.now_s
        self._acts.say("   the program of goals ends")
        yield 3.0
        self._home.intent.is_goal_open, self._home.asked_s = False, life.now_s

    # Stalls and restarts.

    def stall_bridge(self):
        yield from self.stalled(self._rng.choice((0.3, 1.0, 2.0, 5.0)))

    def stalled(self, seconds):
        if self._home.is_bridge_up:
            self._acts.say(f"   for {seconds} s")
            self.truth.was_disturbed = True
            self._home.stall_bridge(seconds)
            yield from self._home.nature.disturb("stall", iter((seconds,)))
            yield 1.0

    def restart_bridge(self):
        yield from self._restarted(self._home.end_bridge)

    def kill_bridge(self):
        yield from self._restarted(self._home.kill_bridge)

    def _restarted(self, end):
        if self._home.is_bridge_up:
            self.truth.was_disturbed = True
            end()
            yield from self._home.nature.disturb("restart", iter((self._rng.choice((0.5, 3.0, 10.0)),)))
            self._home.start_bridge()
            yield 1.0

    def restart_controller(self):
        home = self._home
        if home.vehicle.controller:
            home.programs.kill()
            VirtualNode.destroy_node(home.controller)
            yield self._rng.choice((0.5, 5.0))
            home.start_controller()
