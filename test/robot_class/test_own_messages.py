# SPDX-License-Identifier: Apache-2.0
"""Messages that a robot in one class fills itself: a value of a wrong type is an error, by all distributions."""

import subprocess
import sys

PROGRAM = """
import drone_bridge.robot_class.node
from std_msgs.msg import Float32

Float32(data=12.6)
try:
    Float32(data="12.6")
except AssertionError as error:
    print(error)
"""


def test_a_message_refuses_a_text_for_a_number_in_nodes_of_own_robots():
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=60)
    assert "'data' field must be of type 'float'" in done.stdout
