"""Real tosses of a cube onto a table, motion captured: ContactNets (Pfrommer, Halm and Posa, 2020)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mcetm import UserError
from mcetm.data import Metadata, Transitions
from mcetm.files import find_file

_FILE = "cube_tosses.npz"
_STATE = 13


def read_tosses(path: Path | None = None) -> Transitions:
    """The tosses as transitions: one episode each, no actions, no rewards."""
    found = path or find_file("contactnets", [_FILE])
    if found is None or not found.is_file():
        missing = f"There is no {_FILE}" if path is None else f"{path} does not exist"
        raise UserError(
            f"{missing}: get the tosses of https://github.com/DAIRLab/contact-nets, write them to an .npz "
            "with `states` (rows × 13: position, quaternion, velocity, angular velocity) and `toss_lengths`, "
            "and give it with --data or put it into $MCETM_DATA/contactnets."
        )
    try:
        with np.load(found) as file:
            states, lengths = file["states"], file["toss_lengths"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{found} is not a file of cube tosses: {error}.") from None
    if states.ndim != 2 or states.shape[1] != _STATE or lengths.sum() != len(states) or lengths.min() < 2:
        raise UserError(
            f"{found} is not a file of cube tosses: states {states.shape} must be rows × {_STATE}, and the "
            f"toss lengths (each at least 2) must add up to the rows; they add up to {lengths.sum()}."
        )
    ends = np.cumsum(lengths)
    last = np.zeros(len(states), bool)
    last[ends - 1] = True
    before, after = ~last, ~np.roll(last, 1)
    truncated = np.zeros(int(before.sum()), bool)
    truncated[np.cumsum(lengths - 1) - 1] = True
    return Transitions.from_arrays(
        states[before],
        next_obs=states[after],
        terminated=np.zeros(len(truncated), bool),
        truncated=truncated,
        metadata=Metadata(source=str(found)),
    )
