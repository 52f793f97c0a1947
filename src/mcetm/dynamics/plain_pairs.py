"""The score of pairs in NumPy: a policy carries it along, and knows without JAX where to be trusted.

The same numbers as `pairs.PairScore` gives, forward passes only. Scalings inside the autoencoder have become
part of its first and last layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast

import numpy as np
from jaxtyping import Float32
from pydantic import Field

from mcetm.documents import Record
from mcetm.dynamics.pairs import RUNGS, PairScore
from mcetm.errors import UserError
from mcetm.nn.mlp import MLP, Activation
from mcetm.nn.scaling import Scaling

Layers = tuple[tuple[np.ndarray, np.ndarray], ...]
"""(weight, bias) of each layer; weights are (inputs, outputs)."""
_TINY = np.float32(1e-12)
_NUMBERS = ("radius", "usual", "reach", "extent", "limit", "bound", "unseen")
_ORDINARY = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Values of a column that nobody would look at twice, in its spreads from its mean."""


class PlainPairsAbout(Record):
    """What is said of a score beside its arrays."""

    activation: Literal["relu", "silu", "gelu", "tanh"]
    """Between layers of the autoencoder."""
    odds_activation: Literal["relu", "silu", "gelu", "tanh"] | None
    """Between layers of v; None leaves v out."""
    encoder: Annotated[int, Field(ge=1, le=100)]
    """Layers of the encoder; the decoder has as many."""
    odds: Annotated[int, Field(ge=0, le=100)]
    """Layers of v."""
    far: bool
    """Whether distances count."""


@dataclass(frozen=True, eq=False, repr=False)
class PlainPairScore:
    """High where a pair (s, a) is unlike those of the log; `limit` is what is trusted at most."""

    mean: Float32[np.ndarray, " columns"]
    std: Float32[np.ndarray, " columns"]
    """Of observations and actions, side by side."""
    encoder: Layers
    decoder: Layers
    activation: Activation
    whitening: Float32[np.ndarray, "columns columns"]
    """Takes a standardised row to a covariance of 1: `row @ whitening`."""
    odds: Layers
    """v; empty leaves it out."""
    odds_activation: Activation | None
    radius: float
    usual: float
    reach: float
    extent: float
    bound: float
    limit: float
    ladder: Float32[np.ndarray, " rungs"]
    """The scores that a fresh pair of the log is above once in so many times as `RUNGS` says."""
    unseen: float
    """How many pairs of the log the ladder was found with."""
    far: bool

    @classmethod
    def of(cls, score: PairScore) -> PlainPairScore:
        """The same score, without JAX."""
        unit, codes = score.autoencoder.state_scale, score.autoencoder.code_scale
        obs, action = score.inputs.obs, score.inputs.action
        side_by_side = lambda a, b: np.concatenate([np.asarray(a), np.asarray(b)])  # noqa: E731
        return cls(
            mean=side_by_side(obs.mean, action.mean),
            std=side_by_side(obs.std, action.std),
            encoder=_layers(score.autoencoder.encoder, unit, codes),
            decoder=_layers(score.autoencoder.decoder, codes, unit, undo=True),
            activation=score.autoencoder.encoder.activation,
            whitening=np.ascontiguousarray(np.asarray(score.whitening).T),
            odds=() if score.odds is None else _layers(score.odds),
            odds_activation=None if score.odds is None else score.odds.activation,
            **{name: float(getattr(score, name)) for name in _NUMBERS},
            ladder=np.asarray(score.ladder, np.float32),
            far=score.far,
        )

    @property
    def widths(self) -> tuple[int, int]:
        """Columns of a pair, and codes."""
        return len(self.mean), len(self.encoder[-1][1])

    def __call__(
        self, obs: Float32[np.ndarray, "*batch obs"], action: Float32[np.ndarray, "*batch action"]
    ) -> Float32[np.ndarray, "*batch"]:
        """The score of pairs, for any leading batch axes; not a number where one is not finite."""
        with np.errstate(all="ignore"):  # far away a number may be too large, and then nothing is trusted
            raw = np.concatenate([obs, action], axis=-1, dtype=np.float32)
            pair = (raw - self.mean) / self.std
            code = forward(self.encoder, self.activation, pair)
            length = np.sqrt((code**2).sum(axis=-1, keepdims=True) + _TINY)
            code = code * np.minimum(np.float32(1.0), np.float32(self.radius) / length)
            given_back = forward(self.decoder, self.activation, code)
            off = np.sqrt(((given_back - pair) ** 2).mean(axis=-1) + _TINY)
            found = np.zeros_like(off)
            bound = np.float32(self.bound)
            if self.odds_activation is not None:
                unusual = np.log1p(off / np.float32(self.usual))
                seen = np.concatenate([pair, unusual[..., None]], axis=-1)
                found = bound * np.tanh(forward(self.odds, self.odds_activation, seen)[..., 0] / bound)
            if self.far:
                middle = np.linalg.norm(pair @ self.whitening, axis=-1)
                for distance, most in ((off, self.reach), (middle, self.extent)):
                    beyond = np.maximum(np.float32(0.0), distance / np.float32(most) - np.float32(1.0))
                    found = found + 4 * bound * beyond
            return np.asarray(found, np.float32)

    def one_in(self, score: np.ndarray) -> np.ndarray:
        """How rare a score is: one in so many fresh pairs of the log; at most what could be counted."""
        most = min(self.unseen + 1.0, RUNGS[-1])
        rungs = np.log(np.minimum(RUNGS, most))
        found = np.exp(np.interp(score, self.ladder, rungs))
        # A score that is no number is as rare as any.
        return np.where(np.asarray(score) <= self.ladder[-1], found, most)

    def columns(
        self, obs: Float32[np.ndarray, "rows obs"], action: Float32[np.ndarray, "rows action"]
    ) -> np.ndarray:
        """How much less the score would be if a column alone were ordinary: rows, observation and action."""
        rows = np.concatenate([obs, action], axis=-1, dtype=np.float32)
        score, width = self(obs, action), obs.shape[-1]
        found = np.zeros(rows.shape, np.float32)
        for column in range(rows.shape[-1]):
            for place in _ORDINARY:
                changed = rows.copy()
                changed[:, column] = self.mean[column] + place * self.std[column]
                less = score - self(changed[:, :width], changed[:, width:])
                found[:, column] = np.fmax(found[:, column], less)
        return found

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All its numbers, as files hold them: weights are (outputs, inputs)."""
        arrays = {name: np.float32(getattr(self, name)) for name in _NUMBERS}
        arrays |= {
            "ladder": self.ladder,
            "mean": self.mean,
            "std": self.std,
            "whitening": _turned(self.whitening),
        }
        for part in ("encoder", "decoder", "odds"):
            for i, (weight, bias) in enumerate(getattr(self, part)):
                arrays |= {f"{part}{i}/weight": _turned(weight), f"{part}{i}/bias": bias}
        return {name: np.asarray(array, np.float32) for name, array in arrays.items()}

    def about(self) -> PlainPairsAbout:
        """What `from_arrays` needs to be told beside the arrays."""
        return PlainPairsAbout(
            activation=self.activation,
            odds_activation=self.odds_activation,
            encoder=len(self.encoder),
            odds=len(self.odds),
            far=self.far,
        )

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], about: PlainPairsAbout, *, columns: int, source: str
    ) -> PlainPairScore:
        """Read back what `to_arrays` gave; whatever does not fit is one sentence."""

        def take(name: str, shape: tuple[int | None, ...]) -> np.ndarray:
            if name not in arrays:
                raise UserError(f"{source} cannot be used: the score of pairs has no array '{name}'.")
            array = arrays[name]
            fits = len(shape) == array.ndim and all(
                n in (None, m) for n, m in zip(shape, array.shape, strict=True)
            )
            if not fits or not np.isfinite(array).all():
                what = f"the shape {array.shape}" if not fits else "numbers that are not finite"
                raise UserError(f"{source} cannot be used: '{name}' of the score of pairs has {what}.")
            return array

        def layers(part: str, depth: int, inputs: int, outputs: int | None) -> Layers:
            found = []
            for i in range(depth):
                weight = take(f"{part}{i}/weight", (outputs if i == depth - 1 else None, inputs))
                found.append((_turned(weight), take(f"{part}{i}/bias", (weight.shape[0],))))
                inputs = weight.shape[0]
            return tuple(found)

        encoder = layers("encoder", about.encoder, columns, None)
        numbers = {name: float(take(name, ())) for name in _NUMBERS}
        if (
            min(value for name, value in numbers.items() if name != "limit") <= 0
            or not (take("std", (columns,)) > 0).all()
        ):
            raise UserError(f"{source} cannot be used: the score of pairs has a scale that is not above 0.")
        if (about.odds_activation is None) != (about.odds == 0):
            raise UserError(f"{source} cannot be used: the score of pairs has log-odds without layers.")
        return cls(
            mean=take("mean", (columns,)),
            std=take("std", (columns,)),
            encoder=encoder,
            decoder=layers("decoder", about.encoder, len(encoder[-1][1]), columns),
            activation=about.activation,
            whitening=_turned(take("whitening", (columns, columns))),
            odds=layers("odds", about.odds, columns + 1, 1),
            odds_activation=about.odds_activation,
            **numbers,
            ladder=take("ladder", (len(RUNGS),)),
            far=about.far,
        )


def forward(layers: Layers, activation: str, x: np.ndarray) -> np.ndarray:
    """What an MLP makes of rows."""
    for weight, bias in layers[:-1]:
        x = _ACTIVATIONS[activation](x @ weight + bias)
    weight, bias = layers[-1]
    return x @ weight + bias


_ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, np.float32(0.0)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + 0.044715 * x**3))),
    "tanh": np.tanh,
}


def _turned(weight: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(weight.T)


def _layers(
    network: MLP, before: Scaling | None = None, after: Scaling | None = None, *, undo: bool = False
) -> Layers:
    """Layers with what scales their inputs and outputs inside: standardised on the way in and out.

    With `undo` the other way round, from standardised numbers to standardised numbers of another kind.
    """
    layers = [
        (np.asarray(layer.weight, np.float64), np.asarray(layer.bias, np.float64)) for layer in network.layers
    ]
    if before is not None and after is not None:
        (inner_mean, inner_std), (outer_mean, outer_std) = (_scale(scale) for scale in (before, after))
        if undo:
            layers[0] = layers[0][0] * inner_std, layers[0][1] + layers[0][0] @ inner_mean
            layers[-1] = layers[-1][0] * outer_std[:, None], layers[-1][1] * outer_std + outer_mean
        else:
            layers[0] = layers[0][0] / inner_std, layers[0][1] - (layers[0][0] / inner_std) @ inner_mean
            layers[-1] = layers[-1][0] / outer_std[:, None], (layers[-1][1] - outer_mean) / outer_std
    return tuple((_turned(weight.astype(np.float32)), bias.astype(np.float32)) for weight, bias in layers)


def _scale(scale: Scaling) -> tuple[np.ndarray, np.ndarray]:
    return cast(Any, (np.asarray(scale.mean, np.float64), np.asarray(scale.std, np.float64)))
