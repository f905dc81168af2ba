# SPDX-License-Identifier: Apache-2.0
"""What is said when in the robot protocol, by the robot and by a driver."""
