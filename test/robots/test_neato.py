# SPDX-License-Identifier: Apache-2.0
"""Tests beyond `drone-bridge check neato`: its stop, its lines, and a lidar that stands."""

import math

import pytest
from verbs import STAND, by_robot, verbs

from drone_bridge.kind import Side
from drone_bridge.robot_class import BodyVelocity, Refusal, Telemetry
from drone_bridge.robot_class.connection import RobotClassConnection
from drone_bridge.robots.neato import NO_TEST, Neato

STOP, NOTHING = (b"setmotor lwheeldist %d rwheeldist %d speed %d\n" % ((each,) * 3) for each in (1, 0))


def meanings(end, data):
    """Return what a robot does for bytes, without its answers."""
    end.receive_data(data)
    found = [each for event in end.events() for each in event.meaning]
    return [each for each in found if isinstance(each, BodyVelocity)], b"".join(
        each.answer if isinstance(each, Refusal) else each for each in found if not isinstance(each, BodyVelocity)
    )


def test_a_way_of_0_does_not_stop_it_and_one_of_1_does():
    client, end = Neato(), RobotClassConnection(Neato, Side.VEHICLE)
    neutral = client.encode_command(BodyVelocity())
    assert neutral.startswith(STOP + NOTHING), "a client before may have left it driving"
    assert client.encode_command(BodyVelocity()).startswith(NOTHING + b"get"), "it would creep"
    moving, again = client.encode_command(BodyVelocity(0.2, turn=0.5)), client.encode_command(BodyVelocity())
    assert (moving.split(b"\n")[0], again.startswith(STOP)) == (
        b"setmotor lwheeldist 138 rwheeldist 262 speed 262",
        True,
    )
    assert meanings(end, STOP) == ([], STOP[:-1] + b"\r\n" + NO_TEST + b"\r\n\x1a")
    (driven,), _ = meanings(end, b"TestMode On\nSetMotor 138 262 262\n")
    assert (driven.forward, driven.turn) == pytest.approx((0.2, 0.5), abs=0.001)
    assert [meanings(end, each)[0] for each in (NOTHING, STOP, NOTHING)] == [[], [BodyVelocity()], [BodyVelocity()]]


def test_cr_and_lf_end_a_command_each_as_its_users_have_seen_it():
    end = RobotClassConnection(Neato, Side.VEHICLE)
    assert meanings(end, b"testmode on\r\n")[1] == b"testmode on\r\n\x1a\r\n\x1a"


def test_a_lidar_that_stands_has_no_scan_and_a_bumper_blocks_the_way_ahead():
    client, end = Neato(), Neato()
    end.encode_report(Telemetry((0.0, 0.0, 0.0), 0.0, scan=(1.0,) * 360))
    heard = []
    for lines in (b"getldsscan\n", b"testmode on\n"), (b"setldsrotation on\n", b"getldsscan\n"):
        for line in (*lines, b"getmotors\n"):
            heard.append(client.decode_report(end.decode_command(line)[-1]))
    assert [each.scan and each.scan[:2] for each in heard[2::3]] == [None, (1.0, 1.0)]
    client.decode_report(b"getdigitalsensors\r\nDigital Sensor Name, Value\r\nLSIDEBIT,0\r\nRFRONTBIT,1\r\n\x1a")
    assert client.encode_command(BodyVelocity(0.2, turn=1.0)).startswith(b"setmotor lwheeldist -124 rwheeldist 124 ")
    assert math.isclose(client.wheels.sides(BodyVelocity(-0.2))[0], -0.2)


#: By its help texts: each command that moves or stops, in test mode, and what its end does.
VERBS = {
    "setmotor 100 100 100": BodyVelocity(0.1), "setmotor lwheeldist 1 rwheeldist 1 speed 1": STAND,
    "setmotor lwheeldisable rwheeldisable": STAND, "setmotor rwheeldisable": STAND, "testmode off": STAND,
    "setmotor 100 100 999": Refusal("setmotor"),
    "setmotor lwheeldist 100": Refusal("setmotor"),
    "setmotor 0 0 0": [], "setmotor vacuumon": Refusal("setmotor vacuumon"), "clean": Refusal("clean"),
    "setmotor brush rpm 900": Refusal("setmotor brush"), "setsystemmode shutdown": Refusal("setsystemmode"),
}  # fmt: skip


@verbs(VERBS)
def test_each_verb_is_executed_or_refused(sent, meaning):
    end = Neato()
    end.decode_command(b"testmode on\n")
    assert [each for each in by_robot(end, f"{sent}\n".encode()) if not isinstance(each, bytes)] == meaning


@pytest.mark.parametrize("line", [b"setmotor 100 100 100", b"setldsrotation on"])
def test_out_of_test_mode_it_refuses(line):
    (refusal,) = Neato().decode_command(line + b"\n")
    assert (refusal.command, NO_TEST in refusal.answer) == (line.decode().split()[0], True)
