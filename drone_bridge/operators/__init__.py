# SPDX-License-Identifier: Apache-2.0
"""Small scripted operators, one per protocol: programs that steer a vehicle as a legacy client would."""
