# SPDX-License-Identifier: Apache-2.0
"""What bridges and servers have in common: a lifecycle node that keeps one link to a legacy peer."""
