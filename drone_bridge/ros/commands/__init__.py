# SPDX-License-Identifier: Apache-2.0
"""Command topics of a vehicle: subscriptions, checks of age and type, conversions."""
