# SPDX-License-Identifier: Apache-2.0
"""NavdataParameters: parameters of every session that receives navdata."""

from dataclasses import dataclass

from drone_bridge.parameter_fields import parameter


@dataclass(slots=True)
class NavdataParameters:
    """Parameters of navdata, which may change at any time."""

    navdata_timeout: float = parameter(1.0, "Time without navdata after which it is stale, s.", 0.2, 60.0, live=True)
