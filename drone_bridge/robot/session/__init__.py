# SPDX-License-Identifier: Apache-2.0
"""State machines of the robot's protocol, for a driver and the robot."""
