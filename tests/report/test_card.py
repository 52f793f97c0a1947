import io

from rich.console import Console

from mcetm.data import Metadata, Transitions, make_card
from mcetm.report.card import histogram, show_card
from tests.conftest import random_fields


def shown(log: Transitions, width: int = 100) -> str:
    stream = io.StringIO()
    show_card(make_card(log), Console(file=stream, width=width, color_system=None))
    return stream.getvalue()


def test_a_histogram_shows_every_filled_bin() -> None:
    assert histogram((0, 1, 4, 8)) == " ▁▄█"
    assert histogram((1000, 1)) == "█▁"


def test_wide_observations_are_cut_short() -> None:
    text = shown(Transitions.from_arrays(**random_fields(obs_dim=40)))
    assert "16 more (--json shows all)" in text
    assert len(text.splitlines()) < 60


def test_brackets_in_a_source_are_shown_as_they_are(log: Transitions) -> None:
    assert "data[1].npz" in shown(log.with_metadata(source="data[1].npz"))


def test_a_log_without_actions_and_rewards_has_a_card() -> None:
    fields = random_fields()
    text = shown(Transitions.from_arrays(fields["obs"]))
    assert "action       none" in text
    assert "return" not in text
    assert "(1 dropped)" in text


def test_substitutes_say_that_they_are_substitutes(log: Transitions) -> None:
    provenance = {"environment": "Hopper-v4", "seed": 0, "note": "substitute for something",
                  "shares": [{"policies": ["uniform"]}, {"policies": ["a", "b", "c"]}]}  # fmt: skip
    text = shown(log.with_metadata(provenance=provenance), width=160)
    assert "collected in Hopper-v4; by uniform, a, b and 1 more; seed 0; substitute for something" in text


def test_columns_are_called_what_the_log_calls_them() -> None:
    fields = random_fields()
    fields["obs"][:, 1] = 0.5
    names = Metadata(obs_names=("[level]", "flow", "p"), action_names=("pump", "valve"), reward_name="cost")
    text = shown(Transitions.from_arrays(**fields, metadata=names))
    assert "reward       'cost'" in text
    assert "constant obs columns: flow" in text
    rows = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert {"[level]", "flow", "pump", "valve"} <= set(rows)
