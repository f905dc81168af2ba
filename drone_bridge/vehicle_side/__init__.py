# SPDX-License-Identifier: Apache-2.0
"""What the vehicle's side of each conversation answers, whoever the vehicle is: one simulated, or one in ROS."""
