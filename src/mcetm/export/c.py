"""A policy as one C header: float32, constants only, no allocation, no loop of unknown length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mcetm.dynamics.plain_pairs import Layers, PlainPairScore
from mcetm.export.c_check import check, examples_of
from mcetm.export.c_text import comment, constant, identifier, number, rarity, string, table
from mcetm.export.content import PolicyContent
from mcetm.files import write_text

_HEAD = """\
/* A policy in C99 or C++, written by {exported_by}. It needs <math.h> alone: nothing is allocated and nothing
 * is kept between calls, so it may be called from several threads.
 *
 * An observation, in the log's own units (scaling is part of the first layer):
{columns}
 * An action, which is never outside its bounds:
{actions}
 *
 * How to use it, in one source file (each that includes this has constants of its own):
 *
 *   float obs[{P}_OBS_DIM], action[{P}_ACTION_DIM]{score_variable};
 *   if ({p}_check() != 0) ...  once, at the start: this compiler and this processor are not good enough
 *   if ({p}_act(obs, action{score_argument}) != 0) ...  no action: fall back
{score_use} *
 * {p}_act returns 0, or -1 if an observation or the action is not a finite number; then nothing is written.
 * {score_words}
 * Constants take {flash} bytes, those of {p}_check {checked} more; arrays on the stack at most {stack} bytes.
 * A call is about {work} multiplications with an addition each.
 * Do not compile it with -ffast-math: it must know what is not a number.
 *
{facts}
 */
#ifndef {P}_H
#define {P}_H

#include <float.h>
#include <math.h>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "{p}: compile without -ffast-math or -ffinite-math-only"
#endif

"""
_SCORE_WORDS = """The score says how unlike the log this observation and action are; {p}_trusted(score) is 1
 * where it is at most {P}_TRUST_LIMIT. What is not a number is not trusted.
 * {p}_act_or(obs, fallback, action) does it all: it gives the fallback where there is no action to trust,
 * and returns 1 there.{rarity}"""
_LIMIT = """\
#ifndef {P}_TRUST_LIMIT /* define another one before this file is included */
#define {P}_TRUST_LIMIT {limit}
#endif
"""
_IN_THE_TABLE = (
    "obs_names",
    "action_names",
    "obs_mean",
    "obs_std",
    "action_low",
    "action_high",
    "trust_rarity",
    "examples",
)
"""What the comment says in another place."""
_HELPERS = """\
static inline int {p}_finite(const float *x, int count) {{
  for (int i = 0; i < count; ++i)
    if (!(x[i] >= -FLT_MAX && x[i] <= FLT_MAX)) return 0;
  return 1;
}}

static inline int {p}_near(float x, float wanted) {{
  return fabsf(x - wanted) <= 1e-3f * (1.0f + fabsf(wanted));
}}

static inline void {p}_dense(const float *weight, const float *bias, const float *x, int inputs, float *y,
                             int outputs) {{
  for (int i = 0; i < outputs; ++i) {{
    float sum = 0.0f;
    for (int j = 0; j < inputs; ++j) sum += weight[i * inputs + j] * x[j];
    y[i] = sum + bias[i];
  }}
}}

"""
_ACTIVATIONS = {
    "relu": "x[i] > 0.0f ? x[i] : (x[i] <= 0.0f ? 0.0f : x[i])",  # what is not a number stays so
    "silu": "x[i] / (1.0f + expf(-x[i]))",
    "gelu": "0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])))",
    "tanh": "tanhf(x[i])",
}


def write_header(content: PolicyContent, path: Path) -> list[Path]:
    """`policy.h`, whose names begin with the file's."""
    prefix = identifier(path.stem)
    arrays, networks = _networks(content, prefix)
    parts = [_opening(content, prefix, arrays, networks), _HELPERS.format(p=prefix)]
    used = {activation for _, activation, _ in networks.values()}
    parts += [_activation(prefix, name) for name in sorted(used)]
    parts += [constant(name, array) for name, array in arrays.items()]
    parts += [code for _, _, code in networks.values()]
    if content.pairs is not None:
        parts.append(_score(content.pairs, prefix, actions=content.action_dim))
    parts += [_act(content, prefix), check(content, prefix), f"#endif /* {prefix.upper()}_H */\n"]
    write_text(path, "".join(parts))
    return [path]


def _networks(
    content: PolicyContent, prefix: str
) -> tuple[dict[str, np.ndarray], dict[str, tuple[int, str, str]]]:
    """Constants by name, and each network's widest layer, activation and function."""
    pairs = content.pairs
    arrays: dict[str, np.ndarray] = {f"{prefix}_low": content.low, f"{prefix}_high": content.high}
    networks: dict[str, tuple[Layers, str]] = {"actor": (content.layers, content.nonlinearity)}
    if pairs is not None:
        networks |= {
            "encode": (pairs.encoder, pairs.activation),
            "decode": (pairs.decoder, pairs.activation),
        }
        if pairs.odds_activation is not None:
            networks["odds"] = pairs.odds, pairs.odds_activation
        arrays |= {f"{prefix}_mean": pairs.mean, f"{prefix}_std": pairs.std}
        if pairs.far:
            arrays[f"{prefix}_whitening"] = pairs.whitening.T
    found = {}
    for name, (layers, activation) in networks.items():
        for i, (weight, bias) in enumerate(layers):
            arrays |= {f"{prefix}_{name}_w{i}": weight.T, f"{prefix}_{name}_b{i}": bias}
        widest = max(len(bias) for _, bias in layers)
        found[name] = widest, activation, _network(prefix, name, layers, activation, widest)
    return arrays, found


def _opening(
    content: PolicyContent,
    prefix: str,
    arrays: dict[str, np.ndarray],
    networks: dict[str, tuple[int, str, str]],
) -> str:
    about, macro = content.about, prefix.upper()
    scored = content.pairs is not None
    # Two buffers of a network, and what the score keeps meanwhile.
    kept = content.action_dim
    if content.pairs is not None:
        columns, codes = content.pairs.widths
        kept += 2 * columns + 1 + codes
    stack = 4 * (2 * max(widest for widest, _, _ in networks.values()) + kept)
    told = {name: value for name, value in about.items() if name not in _IN_THE_TABLE}
    facts = "\n".join(f" *   {name}: {comment(value)}" for name, value in told.items())
    work = sum(array.size for array in arrays.values() if array.ndim == 2)
    text = _HEAD.format(
        exported_by=about["exported_by"],
        columns=table("obs", about, content.obs_dim),
        actions=table("action", about, content.action_dim),
        facts=facts,
        p=prefix,
        P=macro,
        score_argument=", &score" if scored else "",
        score_variable=", score" if scored else "",
        score_use=f" *   if (!{prefix}_trusted(score)) ...  unlike the log: fall back\n" if scored else "",
        score_words=_SCORE_WORDS.format(p=prefix, P=macro, rarity=rarity(about["trust_rarity"]))
        if scored
        else "Nothing is known of where to trust it.",
        flash=sum(array.size for array in arrays.values()) * 4,
        checked=4 * sum(rows.size for rows in examples_of(content).values()),
        stack=stack,
        work=work,
    )
    names = {"OBS": content.obs_dim, "ACTION": content.action_dim}
    lines = [f"#define {macro}_{name}_DIM {width}" for name, width in names.items()]
    many = lambda write: lambda values: f"{{{', '.join(map(write, values))}}}"  # noqa: E731
    writers: dict[str, Any] = {
        **dict.fromkeys(("obs_names", "action_names"), many(string)),
        **dict.fromkeys(("obs_mean", "obs_std", "action_low", "action_high"), many(number)),
        **dict.fromkeys(("data_checksum", "policy_checksum", "exported_by"), string),
    }
    lines += [
        f"#define {macro}_{key.upper()} {write(about[key])}" for key, write in writers.items() if key in about
    ]
    limit = "" if content.pairs is None else _LIMIT.format(P=macro, limit=number(content.pairs.limit))
    return f"{text}{chr(10).join(lines)}\n{limit}\n"


def _activation(prefix: str, name: str) -> str:
    return (
        f"static inline void {prefix}_{name}(float *x, int count) {{\n"
        f"  for (int i = 0; i < count; ++i) x[i] = {_ACTIVATIONS[name]};\n}}\n\n"
    )


def _network(prefix: str, name: str, layers: Layers, activation: str, widest: int) -> str:
    """A function that runs one network, from buffer to buffer."""
    lines = [f"static inline void {prefix}_{name}(const float *x, float *y) {{"]
    depth = len(layers)
    if depth > 1:
        lines.append(f"  float a[{widest}]{f', b[{widest}]' if depth > 2 else ''};")
    source = "x"
    for i, (weight, _) in enumerate(layers):
        target = "y" if i == depth - 1 else "ab"[i % 2]
        inputs, outputs = weight.shape
        own = f"{prefix}_{name}"
        lines.append(
            f"  {prefix}_dense(&{own}_w{i}[0][0], {own}_b{i}, {source}, {inputs}, {target}, {outputs});"
        )
        if i < depth - 1:
            lines.append(f"  {prefix}_{activation}({target}, {outputs});")
        source = target
    return "\n".join([*lines, "}\n\n"])


def _score(pairs: PlainPairScore, prefix: str, *, actions: int) -> str:
    columns, codes = pairs.widths
    obs = columns - actions
    n = {name: number(getattr(pairs, name)) for name in ("radius", "usual", "reach", "extent", "bound")}
    lines = [
        f"static inline int {prefix}_trusted(float score) {{",
        f"  return score <= {prefix.upper()}_TRUST_LIMIT;",
        "}",
        "",
        f"static inline float {prefix}_score(const float *obs, const float *action) {{",
        f"  float pair[{columns + 1}], code[{codes}], again[{columns}];",
        "  float sum = 0.0f, scale, off, score = 0.0f;",
        f"  for (int i = 0; i < {columns}; ++i)",
        f"    pair[i] = ((i < {obs} ? obs[i] : action[i - {obs}]) - {prefix}_mean[i]) / {prefix}_std[i];",
        f"  {prefix}_encode(pair, code);",
        f"  for (int i = 0; i < {codes}; ++i) sum += code[i] * code[i];",
        f"  scale = {n['radius']} / sqrtf(sum + 1e-12f);",
        f"  for (int i = 0; i < {codes}; ++i) code[i] *= scale < 1.0f ? scale : 1.0f;",
        f"  {prefix}_decode(code, again);",
        "  sum = 0.0f;",
        f"  for (int i = 0; i < {columns}; ++i) sum += (again[i] - pair[i]) * (again[i] - pair[i]);",
        f"  off = sqrtf(sum / {columns}.0f + 1e-12f);",
    ]
    if pairs.odds_activation is not None:
        lines += [
            f"  pair[{columns}] = log1pf(off / {n['usual']});",
            f"  {prefix}_odds(pair, &sum);",
            f"  score += {n['bound']} * tanhf(sum / {n['bound']});",
        ]
    if pairs.far:
        lines += [
            *_beyond("off", n["reach"], n["bound"]),
            "  sum = 0.0f;",
            f"  for (int i = 0; i < {columns}; ++i) {{",
            "    float row = 0.0f;",
            f"    for (int j = 0; j < {columns}; ++j) row += {prefix}_whitening[i][j] * pair[j];",
            "    sum += row * row;",
            "  }",
            *_beyond("sqrtf(sum)", n["extent"], n["bound"]),
        ]
    return "\n".join([*lines, "  return score;", "}\n\n"])


def _beyond(distance: str, most: str, bound: str) -> list[str]:
    """A term for a distance above its usual range, written so that what is not a number stays so."""
    return [
        f"  scale = {distance} / {most} - 1.0f;",
        f"  if (!(scale <= 0.0f)) score += 4.0f * {bound} * scale;",
    ]


def _act(content: PolicyContent, prefix: str) -> str:
    scored, width = content.pairs is not None, content.action_dim
    more, low, high = ", float *score" if scored else "", f"{prefix}_low[i]", f"{prefix}_high[i]"
    lines = [
        f"static inline int {prefix}_act(const float *obs, float *action{more}) {{",
        f"  float found[{width}];",
        f"  if (!{prefix}_finite(obs, {content.obs_dim})) return -1;",
        f"  {prefix}_actor(obs, found);",
        f"  for (int i = 0; i < {width}; ++i)",
        f"    found[i] = {low} + (tanhf(found[i]) + 1.0f) / 2.0f * ({high} - {low});",
        f"  if (!{prefix}_finite(found, {width})) return -1;",
        f"  for (int i = 0; i < {width}; ++i) {{",  # rounding may go past a bound by a hair
        f"    if (found[i] < {low}) found[i] = {low};",
        f"    if (found[i] > {high}) found[i] = {high};",
        "    action[i] = found[i];",
        "  }",
    ]
    if scored:
        lines.append(f"  *score = {prefix}_score(obs, found);")
    lines += ["  return 0;", "}", ""]
    if scored:
        lines += [
            f"static inline int {prefix}_act_or(const float *obs, const float *fallback, float *action) {{",
            f"  float found[{width}], score;",  # the fallback may be the last action, in the same place
            f"  int outside = {prefix}_act(obs, found, &score) != 0 || !{prefix}_trusted(score);",
            f"  for (int i = 0; i < {width}; ++i) action[i] = outside ? fallback[i] : found[i];",
            "  return outside;",
            "}",
            "",
        ]
    return "\n".join([*lines, ""])
