"""Settings that cannot be, of every algorithm, model and part of a run; and extreme ones that can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import mcetm
from hostile_trial.material import BC, ESTIMATES, EVALUATED, MOPO
from hostile_trial.trial import Case, Place, command
from mcetm.agents import ALGORITHMS
from mcetm.estimates import EstimateSettings
from mcetm.pipeline.config import model_names, name_of
from mcetm.pipeline.presets import make_config
from mcetm.settings import from_plain, rows_of, to_plain

_NUMBER = [
    "0",
    "-1",
    "1.5",
    "true",
    '"x"',
    "null",
    "NaN",
    "Infinity",
    "1e400",
    "[]",
    "{}",
    "",
    "10" + 40 * "0",
]
_WORD = ["0", "true", "null", "[]", '""', "Quantile", "ünknown", "x" * 5000, "a\u202eb", "\x1b[31m"]
_SWITCH = ["0", "1", '"true"', "null", "[]", "yes", "NaN"]
_LIST = ["0", "null", "{}", '["x"]', "[[1]]", "[NaN]", '"x"', "[-1, 1]", "[1]", "[2, 1]"]
_PART = ["0", "null", "[]", '"x"', '{"name": "nobody"}', '{"odd": 1}', "{}"]


def _bad(value: str, allowed: str) -> bool:
    """Whether what `mcetm settings` says a setting can be leaves this value out."""
    parsed: Any = json.loads(value) if _is_json(value) else value
    if "null" in allowed and parsed is None:
        return False
    if "list" in allowed:
        return not (isinstance(parsed, list) and (not parsed or parsed in ([1], [2, 1])))
    if isinstance(parsed, bool):
        return "true" not in allowed
    if isinstance(parsed, float) and not -1e300 < parsed < 1e300:
        return True
    if isinstance(parsed, int | float) and "number" in allowed:
        if "whole" in allowed and (not isinstance(parsed, int) or parsed > 10**9):
            return True
        ends = [part for part in allowed.split(" or ")[0].split() if part[0].isdigit() or part[0] in "<>≥≤-"]
        for sign, end in zip(ends[::2], ends[1::2], strict=False):
            bound = float(end)
            fits = {">": parsed > bound, "≥": parsed >= bound, "<": parsed < bound, "≤": parsed <= bound}[
                sign
            ]
            if not fits:
                return True
        return False
    return allowed != "text"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _values(allowed: str) -> list[str]:
    if "list" in allowed:
        return _LIST
    if "true" in allowed:
        return _SWITCH
    if "number" in allowed:
        return _NUMBER
    return _WORD


def every_setting() -> Iterator[tuple[list[str], str, str]]:
    """How a run is asked for in which a setting is, its path, and what it can be; each path and range once."""
    seen = set()
    runs = [["--algo", name] for name in map(name_of, ALGORITHMS)] + [
        ["--model", name] for name in model_names()
    ]
    for options in runs:
        config = make_config(
            "quick",
            algo=options[1] if options[0] == "--algo" else "mcetm",
            model=options[1] if options[0] == "--model" else None,
        )
        for part in ("algorithm", "model", "world", "evaluation"):
            if getattr(config, part) is None:
                continue
            for path, _, allowed, _ in rows_of(getattr(config, part), part):
                if (path, allowed) not in seen and not path.endswith(".name"):
                    seen.add((path, allowed))
                    yield options, path, allowed
    for name in ("dataset", "task", "label", "seeds", "seed", "holdout", "models_from", "preset", "format"):
        yield [], name, "whole number ≥ 1" if name in ("seeds", "seed", "format") else "text"


def typed() -> Iterator[Case]:
    """Two bad values of each setting, after `--set`; the log has one row, so that nothing trains."""
    for number, (options, path, allowed) in enumerate(every_setting()):
        bad = [value for value in _values(allowed) if _bad(value, allowed)]
        if allowed == "text":
            bad = ["null", "0", "[]", '{"a": 1}']
            if path in ("task", "models_from"):
                bad = ["0", "[]", "true"]
        for step in range(2):
            value = bad[(number + step * 5) % len(bad)]
            yield command(
                "settings after --set",
                f"{path}={value[:20]!r} {' '.join(options)}",
                *("train", "{m}/one.npz", "--out", "run", *options, "--set", f"{path}={value}"),
                words=(path,),
            )


def made() -> Iterator[Case]:
    """Every bad value of every setting, in Python: many at once, as each takes no time."""

    def check(options: list[str], part: str, paths: list[tuple[str, str]]) -> list[str]:
        config: Any = make_config(
            "quick",
            algo=options[1] if options[:1] == ["--algo"] else "mcetm",
            model=options[1] if options[:1] == ["--model"] else None,
        )
        whole = getattr(config, part)
        taken = []
        for path, allowed in paths:
            for text in _values(allowed):
                value = json.loads(text) if _is_json(text) else text
                if not _bad(text, allowed) or (isinstance(value, str) and not value):
                    continue
                plain = to_plain(whole)
                *places, name = path.split(".")[1:]
                inner = plain
                for place in places:
                    inner = inner[place]
                inner[name] = value
                try:
                    from_plain(type(whole), plain, part)
                except mcetm.UserError as error:
                    if path not in str(error):
                        taken.append(f"weak: {path}={text!r:.30}: {error}")
                else:
                    taken.append(f"accepted: {path}={text!r:.30} (can be {allowed})")
        return taken

    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for options, path, allowed in every_setting():
        if "." in path:
            groups.setdefault((" ".join(options), path.split(".")[0]), []).append((path, allowed))
    for (options, part), paths in groups.items():

        def act(place: Place, options: str = options, part: str = part, paths: Any = paths) -> Any:
            if taken := check(options.split(), part, paths):
                raise AssertionError("\n".join(taken))
            raise mcetm.UserError("All were refused.")

        yield Case("settings in Python", f"{options} {part} ({len(paths)} settings)", act)


def odd() -> Iterator[Case]:
    """Ways of writing a change that are none."""
    one = ("train", "{m}/one.npz", "--out", "run", "--set")
    texts = [
        "", "=", "algorithm", "algorithm=", "algorithm=null", "algorithm={}", "algorithm=[]", 'algorithm="bc"',
        "algorithm.=1", ".algorithm=1", "algorithm..width=1", "algorithm.learner=1", "algorithm.learner={}",
        'algorithm.learner={"name":"nobody"}', 'algorithm.learner={"name":"td3","width":0}', "algorithm.learner.name=td4",
        "algorithm.name=bc", "algorithm.rollout=null", "algorithm.rollout=[]", "model=null", 'model="gaussian"', "model={}",
        "model.name=null", "model.name=os:system", 'model={"name":"os:path"}', "world=null", "world.pairs=null",
        "world.pairs={}", "world.reward=null", "baselines=0", "baselines=null", "baselines=[1]", 'baselines=["bc"]',
        "baselines=[{}]", 'baselines=[{"label":"x"}]', 'baselines.0={"label":"BC"}', "baselines.99.label=x",
        "baselines.-1.label=x", "baselines.x=1", 'baselines.0.algorithm={"name":"nobody"}', "baselines.0.part=nothing",
        "evaluation=null", "columns=1", "columns=[]", 'columns={"obs":1}', 'columns={"odd":1}', "columns.obs=1",
        'columns.obs=["a","a"]', "ünïcode=1", "algorithm.penalty=\ud800", "algorithm.penalty=\x00", "a" * 10000 + "=1",
        "algorithm." + "x." * 3000 + "y=1", "algorithm.penalty=" + "[" * 5000 + "]" * 5000, "algorithm.penalty=1 2",
        "algorithm.penalty=0x10", "algorithm.penalty=1_000", "algorithm.penalty=1,5", "algorithm.penalty=-0.0.0",
        "algorithm.penalty=9" + "9" * 5000, "--algo", "algorithm.penalty==1", "seeds=[1,2]", "seeds=3.0", "seed=-1",
        "seed=9223372036854775808", "holdout=0", "holdout=1", "holdout=1e-12", "label=", "label=a/b", "label=..",
        'label="\\n"', "label=" + "x" * 300, "label=MOBILE", "preset=[]", "format=1", "task=", "task=:", "task=a:", "task=:b",
        "dataset=", "dataset=/", "dataset=.", "models_from=/nowhere", "models_from=",
    ]  # fmt: skip
    for text in texts:
        fine = text in ("algorithm.penalty=-0.0.0",)
        yield command(
            "settings, oddly written", f"{text[:50]!r}", *one, text, expect="either" if fine else "refused"
        )
    for first, second in (
        ("algorithm.steps=1", "algorithm.steps=0"),
        ("algorithm={}", "algorithm.penalty=1"),
    ):
        yield command("settings, oddly written", f"{first} {second}", *one, first, second)


def parts() -> Iterator[Case]:
    """Settings of estimators, which have a command of their own."""
    for number, (path, _, allowed, _) in enumerate(rows_of(EstimateSettings())):
        bad = [value for value in _values(allowed) if _bad(value, allowed)]
        value = bad[number % len(bad)]
        yield command(
            "settings of estimate",
            f"{path}={value[:20]!r}",
            "estimate",
            "{m}/bc",
            "--out",
            "drawn",
            "--set",
            *ESTIMATES,
            f"{path}={value}",
            words=(path,),
        )
    for text in ("estimators=[]", 'estimators=["nobody"]', 'estimators=["fqe","fqe"]', "estimators=fqe", "fqe=null", "fqe={}x",
                 "model.elites=9", "horizon=0", "horizon=1000000000", "discount=0", "discount=2", "nothing=1", "", "=",
                 "model.name=diffusion", "doubly_robust.folds=1", "doubly_robust.folds=x"):  # fmt: skip
        yield command(
            "settings of estimate", text, "estimate", "{m}/bc", "--out", "drawn", "--set", *ESTIMATES, text
        )
    for name in (
        "",
        "nobody",
        "MCETM",
        "mcetm ",
        "os:system",
        "os:path",
        "../x",
        "ünï",
        "a" * 5000,
        ":",
        "[red]",
    ):
        yield command("the command settings", repr(name[:20]), "settings", name)
    for preset in ("", "nobody", "../quick", "quick.toml", "/etc/passwd", "a" * 5000):
        yield command(
            "the command settings", f"--preset {preset[:20]!r}", "settings", "mcetm", "--preset", preset
        )
        yield command(
            "the command settings",
            f"train --preset {preset[:20]!r}",
            "train",
            "{m}/one.npz",
            "--preset",
            preset,
        )


def extreme() -> Iterator[Case]:
    """Settings that can be, and lead to numbers that cannot: trained for real, or refused."""
    bc = ["algorithm.learning_rate=1e30", "algorithm.learning_rate=1e-300", "algorithm.learning_rate=1e300",
          "algorithm.batch_size=1000000000", "algorithm.width=1", "algorithm.depth=60", "algorithm.steps=1",
          "holdout=0.999999", "holdout=0.000001", "seed=2147473646", "evaluation.every=1", "evaluation.every=1000000000"]  # fmt: skip
    for text in bc:
        yield _trained("bc", text, *BC, *EVALUATED)
    iql = ["algorithm.expectile=0.999999", "algorithm.temperature=1e30", "algorithm.discount=0.9999999", "algorithm.smoothing=0",
           "algorithm.smoothing=1", "algorithm.discount=0"]  # fmt: skip
    small = (
        "algorithm.width=8",
        "algorithm.depth=1",
        "algorithm.steps=20",
        "algorithm.batch_size=8",
        *EVALUATED,
    )
    for text in iql:
        yield _trained("iql", text, *small)
    mopo = ["algorithm.penalty=1e30", "algorithm.penalty=1e300", "algorithm.learner.most_temperature=1e-30",
            "algorithm.learner.temperature=1e30", "algorithm.learner.actor_rate=1e30", "algorithm.learner.critic_rate=1e300",
            "algorithm.learner.temperature_rate=1e30", "algorithm.rollout.real_share=1", "algorithm.rollout.real_share=0",
            "algorithm.rollout.horizon=1000", "algorithm.rollout.every=1000000000", "algorithm.rollout.memory=1e300",
            "algorithm.rollout.memory=1e-300", "model.elites=1", "model.members=1", "model.learning_rate=1e30",
            "model.bound_weight=1e300", "model.beta=1", "model.weight_decay=[1e300]", "model.weight_decay=[1,2,3,4,5,6,7]",
            "model.validate_every=1", "model.activation=tanh", "world.reward.learning_rate=1e30", "world.reward.patience=1000000000",
            "world.termination=learned", "world.calibration.quantile=0.0000001", "world.calibration.absolute=1e300",
            "world.calibration.rows=1", "world.pairs.bound=1e-300", "world.pairs.bound=1e300", "world.pairs.sigma=[1e-300, 1e300]",
            "world.pairs.noise=[2, 1]", "world.pairs.sigma=[1]", "world.pairs.sigma=[]", "world.pairs.folds=1000000",
            "world.pairs.folds=2", "world.pairs.latent_share=0.000001", "world.pairs.learning_rate=1e30",
            "world.pairs.negatives=none", "world.pairs.quantile=0.00001"]  # fmt: skip
    for text in mopo:
        yield _trained("mopo", text, *MOPO, *EVALUATED)


def _trained(algo: str, text: str, *settings: str) -> Case:
    return command(
        "settings, extreme",
        f"{algo} {text}",
        "train",
        "{m}/log.npz",
        "--algo",
        algo,
        "--seeds",
        1,
        "--out",
        "run",
        "--set",
        *settings,
        text,
        expect="either",
    )


def cases() -> Iterator[Case]:
    """All of them."""
    for make in (typed, odd, parts, made, extreme):
        yield from make()
