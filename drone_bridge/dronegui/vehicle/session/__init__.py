# SPDX-License-Identifier: Apache-2.0
"""Sessions of the vehicle's end. Never imported by the bridge."""
