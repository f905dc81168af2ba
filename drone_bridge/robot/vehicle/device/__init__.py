# SPDX-License-Identifier: Apache-2.0
"""Robot's side of the protocol with its drivers, for the emulated robot and for vehicles in ROS."""
