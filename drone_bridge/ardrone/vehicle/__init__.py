# SPDX-License-Identifier: Apache-2.0
"""The vehicle's end. Never imported by the bridge."""
