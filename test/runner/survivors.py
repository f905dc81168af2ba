# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501
"""Mutants of `mutants.py` that no gate test finds: by function, text of the line, and change, each with the reason.

A reason is why the mutant is equivalent, or the exhaustive test that finds it, as in `test/motion/test_limits.py::...`.
"""

BLIND = "without a position it is blind, and this is not called"
AT_ONE_NUMBER = "at one measured number only"
SAME_LAYOUT = "both processes use this layout"

SURVIVORS: dict[str, dict[str, dict[str, str]]] = {
    "net/send_queue SendQueue.put": {
        "since_s: float = 0.0,": {"0.0 -> 1.0": "a queue whose pieces get no time drops none by age"},
        "if self.on_write and len(self.pieces) == 1:": {
            "self.on_write and len(self.pieces) == 1 -> len(self.pieces) == 1": "_report asks for on_write again"
        },
    },
    "net/last_words_sender": {
        "SLOT_BYTES = 4096": {"4096 -> 8192": SAME_LAYOUT},
        "MEMORY_BYTES = HEAD_BYTES + 4 * SLOT_BYTES": {"4 -> 8": SAME_LAYOUT},
        "WORDS, ENTRY, BUSY, DEADLINE, SAID, SPEAKING, WRITTEN, HEAD_BYTES = 0, 1, 2, 8, 16, 24, 32, 40": {
            "2 -> 4": SAME_LAYOUT,
            "40 -> 80": SAME_LAYOUT,
        },
        "ACCEPT_S, LEAVE_S = 0.5, 0.3": {
            "0.5 -> 1.5": "a longer wait for a peer that does not read",
            "0.3 -> 1.3": "a longer wait for a peer that does not close",
        },
    },
    "net/last_words_sender written_bytes": {
        "queued = int.from_bytes(fcntl.ioctl(connected.fileno(), _SIOCOUTQ, bytes(4)), sys.byteorder)": {
            "4 -> 8": "the kernel fills the first four bytes of any buffer"
        },
    },
    "net/last_words_sender Sender.__init__": {
        "self._file = -1": {"1 -> 2": "any negative one is none"},
        "self._number = 0  # of the file": {"0 -> 1": "it has no file to send to"},
        "self._said_ns, self._rounds = 0, 0  # deadline of the current stall, and what was sent since": {
            "0 -> 1": "no stall has this deadline",
            "0 -> 1 (2)": "the first stall sets it to 0",
        },
        "self._busy_ns = 0  # deadline of a stall while the node writes a piece": {
            "0 -> 1": "no stall has this deadline"
        },
    },
    "net/last_words_sender Sender.run": {
        "message, attached, _, _ = self._control.recvmsg(MESSAGE_BYTES, _socket.CMSG_SPACE(4))": {
            "4 -> 8": "room for two files, where one arrives"
        },
        "break": {"deleted (3)": "the next message can't be received either"},
        "continue": {"deleted": "the last message was ARMED, which does nothing"},
        "self._open(int.from_bytes(attached[0][2][:4], sys.byteorder) if attached else -1)": {
            "4 -> 8": "one descriptor has four bytes"
        },
    },
    "net/last_words_sender Sender._check_stall": {
        "self._rounds += 1": {"1 -> 2": "only a stream asks, and for one"},
    },
    "net/last_words_sender Sender._say_neutral": {
        "return False": {"False -> True": "what is unknown stays unknown until the process continues"},
        'os.pwrite(self._memory, self._said.to_bytes(8, "little"), SAID)': {
            "8 -> 16": "SPEAKING, which is next to it, is cleared right afterwards"
        },
    },
    "net/last_words_sender Sender._rest": {
        "is_known = 0 <= written < words.size == len(words.data)": {
            "0 <= written < words.size == len(words.data) -> 0 <= written <= words.size == len(words.data)": (
                "then there is no rest, as above"
            )
        },
    },
    "net/last_words_sender Sender._leave": {
        "if not connected.recv(65536):": {"65536 -> 131072": "a larger buffer for what is thrown away"},
    },
    "net/last_words_sender Sender._close": {
        "elif self._file >= 0:": {
            "0 -> 1": "0 is the standard input",
            "self._file >= 0 -> self._file > 0": "0 is the standard input",
        },
    },
    "motion/limits": {
        "_STEPS, _LEAST_SPEED = 6, 1e-3": {"6 -> 12": "Newton's method has converged by then"},
        "_FENCE_CORNERS = 72": {"72 -> 144": "a finer drawing"},
        "FASTEST = 1e9": {"1000000000.0 -> 2000000000.0": "far beyond any vehicle, and finite, too"},
    },
    "motion/limits Limits.__init__": {
        "self._charge = 1.0  # last reported share of the battery's charge": {"1.0 -> 2.0": "read only after a report"},
        "self._charged_at = -math.inf  # time of the last report of the charge, s": {
            "-math.inf -> math.inf": "before the first report there is nothing to forget"
        },
    },
    "motion/limits Limits.limited": {
        "if self.parameters.need_odometry and any(asked) and not self.is_blind(now_s):": {
            "self.parameters.need_odometry and any(asked) and (not self.is_blind(now_s)) -> any(asked) and (not self.is_blind(now_s))": "without position limits there are no edges"
        },
    },
    "motion/limits Limits.returning": {
        "if not lasts or not motion.modelled or not start or motion.yaw is None:": {
            "not lasts or not motion.modelled or (not start) or (motion.yaw is None) -> not lasts or not motion.modelled or motion.yaw is None": "a place is modelled from the start on"
        },
        "is_inward = dot(turned((forward, left, 0.0), motion.yaw), (here[0], here[1], 0.0)) < 0.0": {
            "0.0 -> 1.0": "its factor is 0",
            "0.0 -> 1.0 (2)": "its factor is 0",
        },
    },
    "motion/limits Limits._inside": {
        "if motion.position is None or start is None:": {
            "motion.position is None or start is None -> False": BLIND,
            "motion.position is None or start is None -> start is None": BLIND,
            "motion.position is None or start is None -> motion.position is None": BLIND,
        },
        "return velocity  # only if the state has just changed: otherwise blind": {"return None": BLIND},
        "if (excess := dot(world, outward) - allowed) > 0.0:": {
            "(excess := (dot(world, outward) - allowed)) > 0.0 -> (excess := (dot(world, outward) - allowed)) >= 0.0": "an excess of 0 changes nothing"
        },
        "slope = BRAKING / max(allowed, _LEAST_SPEED) if distance > 0.0 else 1.0": {
            "distance > 0.0 -> distance >= 0.0": "at the edge itself only"
        },
        "is_faster = dot(flown, outward) > dot(world, outward) + _FASTER": {
            "dot(flown, outward) > dot(world, outward) + _FASTER -> dot(flown, outward) >= dot(world, outward) + _FASTER": "at one speed only"
        },
        "if is_faster and (excess := dot(world, outward) - allowed_speed(distance)) > 0.0:": {
            "(excess := (dot(world, outward) - allowed_speed(distance))) > 0.0 -> (excess := (dot(world, outward) - allowed_speed(distance))) >= 0.0": "an excess of 0 changes nothing"
        },
    },
    "motion/limits shortened": {
        "return vector if length <= longest else scaled(vector, longest / length)": {
            "length <= longest -> length < longest": "a factor of 1 changes nothing"
        }
    },
    "motion/limits allowed_speed": {
        "if distance <= 0.0:": {"distance <= 0.0 -> distance < 0.0": "both give 0"},
        "return math.sqrt(2.0 * BRAKING * distance)": {"2.0 * BRAKING -> 2.0 / BRAKING": "BRAKING is 1"},
    },
    "net/link_loop LinkLoop._act": {
        "keeper = self._keeper if self._keeper and any(isinstance(action, Send) for action in actions) else None": {
            "self._keeper and any((isinstance(action, Send) for action in actions)) -> any((isinstance(action, Send) for action in actions))": "without a keeper it is None in any case"
        },
    },
    "net/link_loop LinkLoop.end": {
        "self._clock.sleep(min(max(1e-3, self.session.due_s - now_s), END_S))": {
            "max(0.001, self.session.due_s - now_s) -> min(0.001, self.session.due_s - now_s)": "it looks more often"
        }
    },
    "session/hold_state": {
        'ANONYMOUS = HelmPilot("anonymous", "a person without a name")': {
            "HelmPilot('anonymous', 'a person without a name') -> HelmPilot('a person without a name', 'anonymous')": "its id is compared with this constant only"
        },
    },
    "session/duplicate_nodes DuplicateNodes.sign": {
        "if is_active and not self.is_settled(now_s) and (is_settled or run < self._run):": {
            "run < self._run -> run <= self._run": "an equal id is this run's own"
        }
    },
    "ardrone/session/emergency EmergencyBit.__init__": {
        "self._is_sent, self._released = False, RELEASE_PACKETS": {
            "False -> True": "it is not pressed, and each press sets it"
        }
    },
    "robot_class/client_sender ClientSender.next_packet": {
        'return None if data == b"" else self.send(data or b"", now_s)': {
            "data or b'' -> data": "nothing is sent for None, either"
        }
    },
    "robot_class/client_requests ClientRequests.on": {
        'if then != "repeat" or not earlier:': {
            "then != 'repeat' or not earlier -> then != 'repeat'": "what is repeated is pending"
        },
    },
    "robot_class/client_session RobotClassOperatorSession.tick": {
        "return [*self._command(now_s), *unanswered, *(self._pilot.notes if self._pilot else ())]": {
            "self._pilot -> False": "test/robot_class/test_tilted_robot.py::test_velocities_are_flown_by_a_noted_estimate_without_reports"
        }
    },
    "robot_class/greeting Greeting.is_answer": {
        "return bool(self.pending and data and self.pending[1](data))": {
            "self.pending and data and self.pending[1](data) -> data and self.pending[1](data)": "None is a test that fails"
        }
    },
    "robot_class/outstanding OutstandingPackets.sent": {
        "def sent(self, number: int, now_s: float, request: Any = None, timeout_s: float = 0.0) -> None:": {
            "0.0 -> 1.0": "not above ANSWER_S, which is the least timeout"
        }
    },
    "session/continuous_pose ContinuousPose.__init__": {
        "self._is_greeted = False": {"False -> True": "the first pose has none before, and ends it"},
        "self._slack_s = 0.0  # longest gap of late: the reports after it may be late ones": {
            "0.0 -> 1.0": "the first pose sets it"
        },
    },
    "session/continuous_pose ContinuousPose.update": {
        "if (place is None and yaw is None) or not all(abs(each) < FARTHEST for each in (*(place or ()), yaw or 0.0)):": {
            "0.0 -> 1.0": "1 is within FARTHEST, too"
        },
    },
    "session/continuous_pose ContinuousPose.shifted": {
        "pose = self._origin.seeing(PlanarPose(*(place or (0.0, 0.0))[:2], yaw or 0.0))": {
            "0.0 -> 1.0": "a place that is not reported is not returned",
            "0.0 -> 1.0 (2)": "a place that is not reported is not returned",
        }
    },
    "session/continuous_pose ContinuousPose._begins_again": {
        "if self._is_greeted and ((off <= NEAR and was_off > FAR) or (not off and was_off > SHORT)):": {
            "was_off > FAR -> was_off >= FAR": AT_ONE_NUMBER,
            "was_off > SHORT -> was_off >= SHORT": AT_ONE_NUMBER,
        },
        "return moved > most or turned > most_turn": {
            "moved > most -> moved >= most": AT_ONE_NUMBER,
            "turned > most_turn -> turned >= most_turn": AT_ONE_NUMBER,
        },
    },
    "controllers/land_on_pad/pilot LandOnPad._start": {
        "self._since = measured.stamp  # when this state began": {"deleted": "the states that read it set it"},
    },
}
