# SPDX-License-Identifier: Apache-2.0
"""What is sent when in the robot protocol, by the robot and by a driver."""
