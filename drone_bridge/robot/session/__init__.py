# SPDX-License-Identifier: Apache-2.0
"""Sessions of a driver and of a robot, which decide when to send which packet."""
