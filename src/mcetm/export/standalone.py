"""A policy for Python's standard library alone: this file, and the .npz of the same name beside it.

    from policy import Policy            # whatever this file is called

    policy = Policy()
    action, score = policy(observation)  # lists of numbers in and out; score is None where there is none
    policy.trusted(score)                # whether the score is at most policy.limit
    policy.about                         # names of columns, scaling, bounds, checksum of the data, version

As a program it reads a line of numbers for each observation, and writes a line of JSON for each:

    echo "0.1 0.2 0.3" | python policy.py

A ValueError says what is wrong with an observation. Copied by mcetm, whose MIT licence holds for it.
"""

import ast
import json
import math
import operator
import struct
import sys
import zipfile
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any


class Policy:
    """action, score = policy(obs)."""

    def __init__(self, path: str | Path | None = None) -> None:
        arrays = _read(Path(__file__).with_suffix(".npz") if path is None else Path(path))
        self.about: dict[str, Any] = json.loads(bytes(arrays.pop("about")[1]).decode("utf-8"))
        self.limit: float | None = self.about["trust_limit"]
        parts = self.about["parts"]
        self._layers = {name: _layers(arrays, name, count) for name, count in parts["layers"].items()}
        self._activation: dict[str, str] = parts["activations"]
        self._numbers: dict[str, float] = parts["numbers"]
        self._far: bool = parts["far"]
        self._rows = {name: _rows(*arrays[name]) for name in arrays if "/" not in name}

    def __call__(self, obs: Iterable[float]) -> tuple[list[float], float | None]:
        """The action at an observation, and how unlike the log the two are."""
        seen = [float(x) for x in obs]
        if len(seen) != self.about["obs_dim"] or not all(map(math.isfinite, seen)):
            raise ValueError(f"an observation is {self.about['obs_dim']} finite numbers, not {seen}")
        bounds = zip(self.about["action_low"], self.about["action_high"], strict=True)
        action = [
            low + (math.tanh(y) + 1.0) / 2.0 * (high - low)
            for y, (low, high) in zip(self._network("actor", seen), bounds, strict=True)
        ]
        return action, None if self.limit is None else self._score(seen + action)

    def trusted(self, score: float | None) -> bool:
        """Whether a score is within the limit; never where there is none, or where it is not a number."""
        return score is not None and self.limit is not None and score <= self.limit

    def _score(self, raw: list[float]) -> float:
        n = self._numbers
        mean, std = self._rows["mean"][0], self._rows["std"][0]
        pair = [(x - m) / s for x, m, s in zip(raw, mean, std, strict=True)]
        code = self._network("encoder", pair)
        inside = min(1.0, n["radius"] / math.sqrt(math.fsum(c * c for c in code) + 1e-12))
        again = self._network("decoder", [c * inside for c in code])
        off = math.sqrt(sum((a - b) ** 2 for a, b in zip(again, pair, strict=True)) / len(pair) + 1e-12)
        score = 0.0
        if self._layers["odds"]:
            odds = self._network("odds", [*pair, math.log1p(off / n["usual"])])[0]
            score += n["bound"] * math.tanh(odds / n["bound"])
        if self._far:
            middle = math.hypot(*(_dot(row, pair) for row in self._rows["whitening"]))
            score += 4.0 * n["bound"] * max(0.0, off / n["reach"] - 1.0)
            score += 4.0 * n["bound"] * max(0.0, middle / n["extent"] - 1.0)
        return score

    def _network(self, name: str, x: list[float]) -> list[float]:
        layers = self._layers[name]
        for i, (weight, bias) in enumerate(layers):
            x = [_dot(row, x) + b for row, b in zip(weight, bias, strict=True)]
            if i < len(layers) - 1:
                x = [_ACTIVATIONS[self._activation[name]](y) for y in x]
        return x


_ACTIVATIONS = {
    "relu": lambda x: max(0.0, x),
    "silu": lambda x: x * 0.5 * (1.0 + math.tanh(0.5 * x)),
    "gelu": lambda x: 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))),
    "tanh": math.tanh,
}


def _dot(row: Sequence[float], x: Sequence[float]) -> float:
    return sum(map(operator.mul, row, x))


def _layers(arrays: dict[str, Any], name: str, count: int) -> list[tuple[list[list[float]], list[float]]]:
    found = []
    for i in range(count):
        weight, bias = arrays[f"{name}/{i}/weight"], arrays[f"{name}/{i}/bias"]
        found.append((_rows(*weight), _rows(*bias)[0]))
    return found


def _rows(shape: tuple[int, ...], numbers: Sequence[float]) -> list[list[float]]:
    width = shape[-1]
    return [list(numbers[i : i + width]) for i in range(0, len(numbers), width)]


def _read(path: Path) -> dict[str, Any]:
    """Shape and numbers of each array of an .npz of ours, which are all float32 or bytes."""
    found: dict[str, Any] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            content = archive.read(member)
            if content[:8] != b"\x93NUMPY\x01\x00":
                raise ValueError(f"{path} holds {member}, which is no array")
            (length,) = struct.unpack("<H", content[8:10])
            header = ast.literal_eval(content[10 : 10 + length].decode("latin-1"))
            kind = {"<f4": "f", "|u1": "B"}.get(header["descr"])
            if kind is None or header["fortran_order"]:
                raise ValueError(f"{path} holds {member}, which is no array of ours")
            numbers = array(kind)
            numbers.frombytes(content[10 + length :])
            if sys.byteorder == "big":
                numbers.byteswap()
            if len(numbers) != math.prod(header["shape"]):
                raise ValueError(f"{path} is damaged: {member} has {len(numbers)} numbers")
            found[member.removesuffix(".npy")] = (header["shape"], numbers)
    return found


def main() -> None:
    """Answer observations from the standard input."""
    policy = Policy()
    for line in sys.stdin:
        action, score = policy([float(x) for x in line.replace(",", " ").split()])
        answer = {"action": action, "score": score, "trusted": policy.trusted(score), "limit": policy.limit}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
