"""Objectives for energies: InfoNCE, ranking NCE, the gradient penalty, the energy regulariser.

The energies of candidate 0 (the positive) and of its negatives go in, a loss comes out. All is for one
transition.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def info_nce(energies: Float[Array, " candidates"]) -> Float[Array, ""]:
    """−log softmax(−E)₀: how surely the truth, candidate 0, is told from its negatives (the paper's loss).

    Adding any c(s, a) to the energy leaves it unchanged, so it fixes differences of energies only.
    """
    return energies[0] + jax.nn.logsumexp(-energies)


def ranking_nce(
    energies: Float[Array, " candidates"], log_proposal: Float[Array, " candidates"]
) -> Float[Array, ""]:
    """InfoNCE corrected for where the negatives come from: the logit of a candidate is −E − log q.

    With negatives drawn from q its minimum is E = −log p + c(s, a), whatever q is; without the correction
    the energy learns log(p/q) instead (Ma and Collins, 2018).
    """
    return info_nce(energies + log_proposal)


def gradient_penalty(
    norms: Float[Array, " candidates"], margin: float, reduction: Literal["mean", "sum"] = "mean"
) -> Float[Array, ""]:
    """max(0, ‖∂E/∂s'‖ − G)² over the candidates: hinge first, then square.

    The paper's bracket squares first, which would push small gradients *up* to the margin; EMPO's code and
    IBC have this form. The paper sums over candidates, the codes take the mean.
    """
    hinge = jnp.maximum(norms - margin, 0.0) ** 2
    return hinge.mean() if reduction == "mean" else hinge.sum()


def energy_regulariser(energies: Float[Array, " candidates"]) -> Float[Array, ""]:
    """E² of the positive plus the mean E² of its negatives: pins the level that InfoNCE leaves free."""
    return energies[0] ** 2 + (energies[1:] ** 2).mean()
