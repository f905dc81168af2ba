# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge topic`, `service` and `param`: the verbs of `ros2` that our docs use, for systems without `ros2`.

Arguments are those of `ros2`. If that is installed, it is run instead, and its command line is printed.
"""

from drone_bridge.ros.process.environment import check_message_fields

check_message_fields()  # values are typed by a person
