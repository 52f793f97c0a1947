"""Names of the algorithms, in a module that costs nothing to import: the command line needs them at once."""

from __future__ import annotations

from typing import Literal

Algo = Literal[
    "mcetm",
    "mcetm-td3bc",
    "mobile",
    "mopo",
    "morel",
    "empo",
    "empo-official",
    "rambo",
    "combo",
    "cql",
    "edac",
    "td3bc",
    "iql",
    "bc",
]
