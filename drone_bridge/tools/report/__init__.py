# SPDX-License-Identifier: Apache-2.0
"""Report of a bag as one HTML page."""
