"""A policy as ONNX: from `obs` (batch, columns) to `action`, `trust_score` and `trust_limit`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mcetm.dynamics.plain_pairs import Layers, PlainPairScore
from mcetm.export.content import PolicyContent
from mcetm.export.protobuf import Graph
from mcetm.files import write_bytes
from mcetm.versions import version_of


def write_onnx(content: PolicyContent, path: Path) -> list[Path]:
    """`policy.onnx`, with what is known of the policy in its metadata."""
    graph = Graph()
    squashed = graph.add("Tanh", mlp(graph, "obs", content.layers, content.nonlinearity))
    # In the order in which the NumPy policy does it.
    unit = graph.add("Mul", graph.add("Add", squashed, graph.constant(1.0)), graph.constant(0.5))
    wide = graph.add("Mul", unit, graph.constant(content.high - content.low))
    graph.add("Add", wide, graph.constant(content.low), to="action")
    outputs: dict[str, tuple[str | int, ...]] = {"action": ("batch", content.action_dim)}
    if content.pairs is not None:
        _score(graph, content.pairs)
        outputs |= {"trust_score": ("batch",), "trust_limit": ()}
    model = graph.model(
        "policy",
        {"obs": ("batch", content.obs_dim)},
        outputs,
        metadata=as_metadata(content.about),
        producer=("mcetm", version_of("mcetm")),
    )
    write_bytes(path, model)
    return [path]


def as_metadata(about: Mapping[str, Any]) -> dict[str, str]:
    """Text stays text; everything else is JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in about.items()}


def mlp(graph: Graph, x: str, layers: Layers, activation: str) -> str:
    """An MLP's nodes; weights are (inputs, outputs)."""
    for i, (weight, bias) in enumerate(layers):
        x = graph.add("Add", graph.add("MatMul", x, graph.constant(weight)), graph.constant(bias))
        if i < len(layers) - 1:
            x = _activate(graph, x, activation)
    return x


def _activate(graph: Graph, x: str, activation: str) -> str:
    if activation == "silu":
        return graph.add("Mul", x, graph.add("Sigmoid", x))
    if activation == "gelu":
        cubed = graph.add("Mul", graph.add("Mul", x, x), graph.add("Mul", x, graph.constant(0.044715)))
        inner = graph.add("Mul", graph.add("Add", x, cubed), graph.constant(math.sqrt(2 / math.pi)))
        gate = graph.add("Add", graph.add("Tanh", inner), graph.constant(1.0))
        return graph.add("Mul", graph.add("Mul", x, graph.constant(0.5)), gate)
    return graph.add({"relu": "Relu", "tanh": "Tanh"}[activation], x)


def _score(graph: Graph, pairs: PlainPairScore) -> None:
    """The nodes of `PlainPairScore.__call__`, line by line."""
    constant, columns = graph.constant, pairs.widths[0]
    last = constant(np.array([-1]))

    def root_of_sum(x: str, size: float = 1.0, tiny: float = 1e-12) -> str:
        total = graph.add("ReduceSum", graph.add("Mul", x, x), last, keepdims=1)
        total = total if size == 1.0 else graph.add("Div", total, constant(size))
        return graph.add("Sqrt", graph.add("Add", total, constant(tiny)) if tiny else total)

    raw = graph.add("Concat", "obs", "action", axis=-1)
    pair = graph.add("Div", graph.add("Sub", raw, constant(pairs.mean)), constant(pairs.std))
    code = mlp(graph, pair, pairs.encoder, pairs.activation)
    inside = graph.add("Div", constant(pairs.radius), root_of_sum(code))
    code = graph.add("Mul", code, graph.add("Min", inside, constant(1.0)))
    again = mlp(graph, code, pairs.decoder, pairs.activation)
    off = root_of_sum(graph.add("Sub", again, pair), size=float(columns))
    terms = []
    if pairs.odds_activation is not None:
        unusual = graph.add("Add", graph.add("Div", off, constant(pairs.usual)), constant(1.0))
        seen = graph.add("Concat", pair, graph.add("Log", unusual), axis=-1)
        odds = mlp(graph, seen, pairs.odds, pairs.odds_activation)
        bounded = graph.add("Tanh", graph.add("Div", odds, constant(pairs.bound)))
        terms.append(graph.add("Mul", bounded, constant(pairs.bound)))
    if pairs.far:
        middle = root_of_sum(graph.add("MatMul", pair, constant(pairs.whitening)), tiny=0.0)
        for distance, most in ((off, pairs.reach), (middle, pairs.extent)):
            beyond = graph.add("Sub", graph.add("Div", distance, constant(most)), constant(1.0))
            terms.append(graph.add("Mul", graph.add("Relu", beyond), constant(4.0 * pairs.bound)))
    total = terms[0] if terms else graph.add("Mul", off, constant(0.0))
    for term in terms[1:]:
        total = graph.add("Add", total, term)
    graph.add("Squeeze", total, last, to="trust_score")
    graph.add("Identity", constant(pairs.limit), to="trust_limit")
