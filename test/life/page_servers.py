# SPDX-License-Identifier: Apache-2.0
"""Pages of people, and the real server of each: leases, pilots, STOP and wishes. Only the sockets are replaced."""

import json
import math
from collections import deque
from functools import partial

from house import VirtualFileWriter
from virtual_ros import VirtualNode, node_of
from virtual_time import EPOCH_S, Process

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.hold.wish_file import WishFile
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.tools.web.helm import TOKEN_PERIOD_S
from drone_bridge.tools.web.node import POLL_PERIOD_S, WebBridge

#: Time that a message of a page takes, and until a page connects again, s.
TRAVEL_S, AGAIN_S = 0.02, 0.5
AXES = "x", "y", "z", "yaw"


class Connection:
    """Both ends of a page's connection: in order, and late while the network is cut."""

    def __init__(self, page, server):
        self.page, self.server, self.transport = page, server, self
        self.inbox, self.has_ended, self._waiting = deque(), False, (deque(), deque())
        self._serving = server.pilots(self, True)
        page.life.at_end.append(lambda: self._serving)  # a killed server does not even close
        server.process.run(self._serve)

    def get_write_buffer_size(self):
        return len(self._waiting[0]) if self.page.is_cut else 0

    async def send(self, text):
        self._put(0, lambda: self.page.receive(json.loads(text)))

    def request(self, **fields):
        self._put(1, lambda: self.server.process.run(partial(self._take, json.dumps(fields))))

    def close(self):
        self.has_ended = True
        self.server.process.run(self._serve)

    def _put(self, direction, call):
        self._waiting[direction].append(call)
        self.page.life.after(TRAVEL_S, lambda: self._pass(direction))

    def _pass(self, direction):
        if self.page.is_cut:
            self.page.life.at(self.page.cut_until_s, lambda: self._pass(direction))
        elif self._waiting[direction] and not self.has_ended:
            self._waiting[direction].popleft()()

    def _take(self, text):
        self.inbox.append(text)
        self._serve()

    def _serve(self):
        try:
            self._serving.send(None)
        except StopIteration:
            self.has_ended = True


class PageServer(WebBridge):
    """The real node of a page's server, without its sockets."""

    offset_s = 0.0

    def start(self):
        file = WishFile(self.context.get_domain_id())
        self._wish_file, self._is_open, ticks = VirtualFileWriter(file.keep, print), True, [0]
        self.process.on_kill = lambda: file._locked and file._locked.close()
        self.pilots = self._pilots = self._make_pilots()

        def tick():
            ticks[0] += 1
            self.pilots.tick(elapsed_s(), is_for_token=ticks[0] % 2 == 0)

        self.process.every(TOKEN_PERIOD_S / 2, tick)
        self.process.every(POLL_PERIOD_S, self._look_for_vehicles)

    def _look_for_vehicles(self):
        self._update_fleet(dict(self.get_topic_names_and_types()), dict(self.get_service_names_and_types()))

    def _tell(self, call, *what):
        self.process.after(0.0, lambda: call(*what))

    def _show(self, topics):
        pass

    def _now(self):
        return time_from_seconds(EPOCH_S + self.process.life.now_s + self.offset_s)


class Host:
    """A computer with a server of pages, whose clock may be off."""

    def __init__(self, home, name, offset_s):
        self.home, self.name, self.offset_s = home, name, offset_s
        self.pilot_ids = set()
        self.start()

    @property
    def is_up(self):
        return self.process.is_alive and not self.process.is_stalled

    @property
    def up_s(self):
        """Time since which it runs; infinity while it does not."""
        return max(self._started_s, self.process.stalled_until_s) if self.is_up else math.inf

    def start(self):
        self.process, self._started_s = Process(self.home.life, self.name), self.home.life.now_s
        self.process.run(self._begin)

    def _begin(self):
        self.server = node_of(PageServer, self.process, self.home.graph, self.home.log)
        self.server.offset_s = self.offset_s
        self.server.start()
        self.pilot_ids.add(self.server.pilots.pilot("").id)

    def kill(self):
        self.process.kill()
        VirtualNode.destroy_node(self.server)


class Page:
    """A page: it returns each token with the stick, and repeats STOP until it is confirmed."""

    def __init__(self, life, host, name, topic):
        self.life, self.host, self.name, self.topic = life, host, name, topic
        self.cut_until_s, self.token_s, self.is_busy = -math.inf, -math.inf, False
        self.stick, self.stop_number, self._stops_all, self._number = {}, None, False, 0
        #: What it is told of the vehicle, and since when; what it has sent last, with its times.
        self.vehicle, self.told_s, self.sent, self.connection = None, life.now_s, deque(maxlen=50), None
        self.must_let_go, self.reason = False, ""
        self.refused_s, self.took_s, self.asked_s, self.open_s = -math.inf, -math.inf, life.now_s, math.inf
        life.every(AGAIN_S, self._connect)

    @property
    def is_cut(self):
        return self.life.now_s < self.cut_until_s

    @property
    def is_fresh(self):
        """Whether tokens arrive, as the page shows."""
        return self.connection is not None and self.life.now_s - self.token_s < 0.5

    @property
    def is_pilot(self):
        return self.vehicle is not None and self.vehicle["pilot"] == "you"

    def _connect(self):
        connection = self.connection
        if connection and (connection.has_ended or connection.server is not self.host.server):
            self._forget()
        elif not connection and self.host.is_up and not self.is_cut:
            self.connection, self.open_s = Connection(self, self.host.server), self.life.now_s
            self.connection.request(op="hello", name=self.name)
            self._send_stop()

    def _forget(self):
        self.connection, self.vehicle, self.told_s, self.open_s = None, None, self.life.now_s, math.inf

    def close(self):
        """Close the page, which is opened again later."""
        if self.connection:
            self.connection.close()
            self._forget()

    def receive(self, message):
        getattr(self, f"_take_{message['op']}", id)(message)

    def _take_token(self, message):
        self.token, self.token_s = message["token"], self.life.now_s
        if self.is_pilot:
            self.sent.append((self.life.now_s, dict(self.stick)))
            self.must_let_go &= any(self.stick.values())
            self.request("steer", motion=self.stick)

    def _take_vehicles(self, message):
        before, self.vehicle = self.state, next((v for v in message["vehicles"] if v["topic"] == self.topic), None)
        if self.state != before:
            self.told_s = self.life.now_s

    def _take_refused(self, message):
        self.refused_s, self.reason = self.life.now_s, message["reason"]

    def _take_stopped(self, message):
        if message["number"] == self.stop_number:
            self.stop_number = None

    @property
    def state(self):
        """What a person sees: whose the helm is, why it is not followed, and whether the vehicle is held."""
        told = self.vehicle
        held = told and (told["held"] and told["held"]["is_sure"])
        return told and (told["pilot"], bool(told["refused_helm"]), held)

    def request(self, op, **fields):
        if self.connection:
            self.connection.request(op=op, token=getattr(self, "token", 0), **fields)

    def take(self):
        self.must_let_go, self.took_s = False, self.life.now_s
        self.request("take", vehicle=self.topic)

    def stop(self, *, stops_all):
        self._number += 1
        self.stop_number, self._stops_all = self._number, stops_all
        self._send_stop()

    def _send_stop(self):
        if self.stop_number is not None:
            self.request("stop", number=self.stop_number, **({} if self._stops_all else {"vehicles": [self.topic]}))

    def cut(self, seconds):
        self.cut_until_s = self.life.now_s + seconds
        self.must_let_go |= seconds > 0.5 and self.is_pilot and any(self.stick.values())
