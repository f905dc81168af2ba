# SPDX-License-Identifier: Apache-2.0
"""One lifecycle node per protocol that plays the vehicle: a legacy operator steers a ROS robot."""
