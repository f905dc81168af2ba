# SPDX-License-Identifier: Apache-2.0
"""PageTruth: what people at pages may expect, by docs/view.md alone, from what they did and what their pages show."""

from truth import COMMAND_S, SAID_S, Source
from vehicle import ZERO, Told

#: Time until a server and its pages agree, until a stick counts as let go, a STOP is confirmed, and a lease ends, s.
AGREED_S, STICK_S, CONFIRMED_S, LEASE_S = 3.5, 0.6, 3.0, 8.0


class PageTruth:
    """Judge of the pages of a life. It takes what the servers publish from the graph."""

    def __init__(self, home, truth, hosts, pages):
        self._home, self._life, self._truth, self._hosts, self._pages = home, home.life, truth, hosts, pages
        self._sources = {host: Source(host.name, "~/helm", host.offset_s) for host in hosts}
        self._piloted_s = dict.fromkeys(hosts, home.life.now_s)
        home.graph.tap(home.topic("~/pilot"), self._take)

    def _take(self, message):
        """(xi) A server publishes the command of a page that it calls the pilot, and no old one."""
        host = next((each for each in self._hosts if message.id in each.pilot_ids), None)
        if host is None or message.asks:
            return
        linear, angular, now_s = message.twist.linear, message.twist.angular, self._life.now_s
        velocity = Told(linear.x, linear.y, linear.z, angular.z)
        self._truth.published(self._sources[host], velocity)
        self._truth.checks["xi relayed"] += 1
        if velocity != ZERO and not any(self._gave(page, velocity) for page in self._pages if page.host is host):
            given = [(page.name, page.state, page.must_let_go, page.sent and page.sent[-1]) for page in self._pages]
            self._find("xi relayed", f"{velocity} of nobody: {given}")
        if any(page.is_pilot or now_s - page.took_s < 1.0 for page in self._pages if page.host is host):
            self._piloted_s[host] = now_s
        if now_s - self._piloted_s[host] > LEASE_S:
            self._find("xi no pilot", f"{host.name} is at the helm for nobody")

    def _gave(self, page, velocity):
        signs = [(value > 0) - (value < 0) for value in velocity]
        recent = [motion for at_s, motion in page.sent if self._life.now_s - at_s < STICK_S]
        return not page.must_let_go and any(signs == _signs(each) for each in recent)

    def _find(self, rule, sentence):
        self._truth.find(rule, "", sentence)

    def judge(self, is_calm):
        """Judge what the pages show. `is_calm`: bridge, network and vehicle are undisturbed."""
        now_s, steers = self._life.now_s, []
        for page in self._pages:
            if page.stop_number is None:
                page.asked_s = now_s
            if now_s - max(page.asked_s, page.cut_until_s, page.open_s, page.host.up_s) > CONFIRMED_S:
                self._find("iii unconfirmed", f"{page.name}: STOP is not confirmed")
            is_told = page.state is not None and now_s - page.told_s > AGREED_S
            if not is_told or not self.is_certain(page) or not is_calm:
                continue
            pilot, is_refused, held = page.state
            if pilot == "you" and not is_refused:
                steers.append(page.name)
                if not held:
                    self._is_followed(page)
            if held:
                self._truth.checks["ix told held"] += 1
                vehicle = self._home.vehicle
                if not vehicle.flies_by_goals and vehicle.is_moving and not self._truth.is_landing(vehicle.told):
                    self._find("ix told held", f"{page.name} is told that it is held, and it is told {vehicle.told}")
        self._truth.checks["vii one pilot"] += len(steers) > 0
        if len(steers) > 1:
            self._find("vii one pilot", f"{steers} are told that they steer")

    def is_certain(self, page):
        """Whether nothing between a page and the vehicle has changed lately."""
        since_s = max(page.host.up_s, page.cut_until_s, page.open_s, self._truth.quiet_s)
        return page.is_fresh and self._life.now_s - since_s > AGREED_S and self._home.bridge_up_s > AGREED_S

    def _is_followed(self, page):
        """(x) Who is told that he steers, steers."""
        recent = [motion for at_s, motion in page.sent if self._life.now_s - at_s < SAID_S]
        if page.must_let_go or len(recent) < 0.8 * 10 * SAID_S or any(each != recent[0] for each in recent):
            return
        if not any(recent[0].values()) or page.refused_s > self._life.now_s - SAID_S:
            return
        self._truth.checks["x told pilot"] += 1
        if self._truth.was_still(SAID_S - COMMAND_S) and not self._truth.said():
            self._find("x told pilot", f"{page.name} gives {recent[0]}, is told nothing, and it stands")


def _signs(motion):
    return [(value > 0) - (value < 0) for value in (motion.get(axis, 0.0) for axis in ("x", "y", "z", "yaw"))]
