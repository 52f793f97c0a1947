"""Tables of somebody's own: names, dialects, times, and what is said where it cannot work."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcetm import Columns, Transitions, UserError, load_dataset, make_card
from mcetm.cli import main
from mcetm.data import DataError
from mcetm.data.columns import columns_beside
from mcetm.data.describe import write_description
from mcetm.data.dialect import decimal_of, number
from mcetm.settings import to_plain
from tests.conftest import assert_same, random_fields

PLANT = Columns(
    obs=("Füllstand", "flow", "p [bar]"),
    action=("pump", "valve"),
    reward="-cost",
    episode="batch",
    terminated="trip",
)
OPTIONS = ["--obs", *PLANT.obs, "--action", *PLANT.action, "--cost", "cost", "--episode", "batch"]


def plant(**changes: Any) -> pd.DataFrame:
    """A log of three batches with names of its own; the second one trips."""
    fields = random_fields((7, 5, 9))
    frame = pd.DataFrame(dict(zip(PLANT.obs, fields["obs"].T.astype(np.float64), strict=True)))
    frame["pump"], frame["valve"] = fields["action"].T.astype(np.float64)
    frame["cost"] = -fields["reward"].astype(np.float64)
    frame["batch"] = np.repeat(["A7", "B1", "C9"], (7, 5, 9))
    frame["trip"] = fields["terminated"].astype(int)
    frame["operator"] = "Meier"
    return frame.assign(**changes)


def expected() -> Transitions:
    fields = random_fields((7, 5, 9))
    return Transitions.from_arrays(
        **(fields | {"next_obs": None, "truncated": None}), episode=np.repeat([0, 1, 2], (7, 5, 9))
    )


def faults_of(source: Any, columns: Columns | None = PLANT) -> list[str]:
    read: Any = load_dataset if isinstance(source, Path) else Transitions.from_dataframe
    with pytest.raises(DataError) as caught:
        read(source, columns=columns)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize("kind", ["pandas", "polars", "parquet", "csv", "dictionary"])
def test_columns_have_the_names_of_whoever_made_the_table(kind: str, tmp_path: Path) -> None:
    frame = plant()
    if kind == "pandas":
        log = Transitions.from_dataframe(frame, columns=PLANT)
    elif kind == "polars":
        log = Transitions.from_dataframe(pl.from_pandas(frame), columns=PLANT)
    elif kind == "parquet":
        frame.to_parquet(tmp_path / "plant.parquet")
        log = load_dataset(tmp_path / "plant.parquet", columns=PLANT)
    else:
        frame.to_csv(tmp_path / "plant.csv", index=False)
        given: Any = PLANT
        if kind == "dictionary":
            given = {"obs": PLANT.obs, "action": PLANT.action, "reward": "-cost", "episode": "batch"}
            given |= {"terminated": "trip"}
        log = load_dataset(tmp_path / "plant.csv", columns=given)
    assert_same(log, expected())
    metadata = log.metadata
    assert (metadata.obs_names, metadata.action_names, metadata.reward_name) == (
        PLANT.obs,
        PLANT.action,
        "-cost",
    )
    assert "columns not used: operator" in metadata.notes


DIALECTS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "semicolons": lambda f, p: f.to_csv(p, index=False, sep=";"),
    "tabs": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    "bars": lambda f, p: f.to_csv(p, index=False, sep="|"),
    "decimal commas": lambda f, p: f.to_csv(p, index=False, sep=";", decimal=","),
    "decimal commas between tabs": lambda f, p: f.to_csv(p, index=False, sep="\t", decimal=","),
    "quoted decimal commas": lambda f, p: f.to_csv(p, index=False, decimal=",", quoting=1),
    "everything quoted": lambda f, p: f.to_csv(p, index=False, quoting=1),
    "a mark of byte order": lambda f, p: f.to_csv(p, index=False, encoding="utf-8-sig"),
    "UTF-16": lambda f, p: f.to_csv(p, index=False, sep="\t", encoding="utf-16"),
    "Windows' letters": lambda f, p: f.to_csv(p, index=False, sep=";", encoding="cp1252"),
    "Windows' lines": lambda f, p: f.to_csv(p, index=False, lineterminator="\r\n"),
    "Excel's first line": lambda f, p: p.write_text("sep=;\n" + f.to_csv(index=False, sep=";")),
    "spaces behind names": lambda f, p: (
        p.write_text(f.to_csv(index=False).replace("flow,", " flow ,", 1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_log(dialect: str, tmp_path: Path) -> None:
    DIALECTS[dialect](plant(), tmp_path / "plant.csv")
    assert_same(load_dataset(tmp_path / "plant.csv", columns=PLANT), expected())


@pytest.mark.parametrize(
    ("dialect", "words"),
    [
        ("decimal commas", "read with cells separated by semicolons, decimal commas"),
        ("Windows' letters", "read with cells separated by semicolons, text in cp1252"),
    ],
)
def test_what_was_recognised_is_said(dialect: str, words: str, tmp_path: Path) -> None:
    DIALECTS[dialect](plant(), tmp_path / "plant.csv")
    assert words in make_card(load_dataset(tmp_path / "plant.csv", columns=PLANT)).warnings


@given(
    values=st.lists(st.integers(-(10**9), 10**9), min_size=12, max_size=30),
    places=st.integers(1, 6),
    decimal=st.sampled_from([".", ","]),
    grouped=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_numbers_come_back_whatever_their_signs(
    values: list[int], places: int, decimal: str, grouped: bool
) -> None:
    """Also with groups of thousands; where one number settles the decimal sign, all are read by it."""
    exact = [value / 10**places for value in values]
    texts = [f"{value:{',' if grouped else ''}.{places}f}" for value in exact]
    if decimal == ",":
        swap = str.maketrans(",.", ".,")
        texts = [text.translate(swap) for text in texts]
    found, unclear = decimal_of([*texts, f"0{decimal}5"])
    assert unclear is None
    assert found == decimal
    assert [number(text, found) for text in texts] == exact


def test_a_number_of_two_readings_is_refused_until_somebody_says(tmp_path: Path) -> None:
    """1,234 is over a thousand for some and a little more than one for others."""
    path = tmp_path / "log.csv"
    path.write_text("obs_0;reward\n" + "1,234;1\n" * 12)
    assert faults_of(path, None) == [
        "table: may be a thousand or a fraction, '1,234'; say what separates decimals (decimal)"
    ]
    assert load_dataset(path, columns=Columns(decimal=",")).obs[0] == np.float32(1.234)
    assert load_dataset(path, columns=Columns(decimal=".")).obs[0] == 1234.0
    path.write_text("obs_0;reward\n" + "1,234;0,5\n" * 12)
    assert load_dataset(path).obs[0] == np.float32(1.234), "the other column settles it"
    path.write_text("obs_0;reward\n" + "1,5;0.5\n" * 12)
    assert faults_of(path, None) == ["obs_0, row 0: is not numeric, '1,5'"], "both signs in one file"
    path.write_text("obs_0;reward\n" + "1 234,5;0,5\n" * 12)
    assert load_dataset(path).obs[0] == 1234.5


def test_decimal_commas_between_commas_are_named(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("obs_0,obs_1,reward\n" + "1,5,2,5,0,1\n" * 12)
    assert faults_of(tmp_path / "log.csv", None) == [
        "table, row 0: has 6 cells, but the header has 3; numbers with decimal commas need another "
        "separator, such as semicolons"
    ]


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        (
            {"obs": ("Füllstand", "Flow", "p [bar]")},
            ["Flow: is no column of the table; did you mean 'flow'?"],
        ),
        ({"action": ("pump", "valv")}, ["valv: is no column of the table; did you mean 'valve'?"]),
        (
            {"obs": ("füllstand", "P")},
            [
                "füllstand: is no column of the table; did you mean 'Füllstand'?",
                "P: is no column of the table; did you mean 'p [bar]'?",
            ],
        ),
        (
            {"reward": "quality", "episode": "lot"},
            [
                f"{name}: is no column of the table; its columns are Füllstand, flow, p [bar], pump, valve, "
                "cost, batch, trip, operator"
                for name in ("quality", "lot")
            ],
        ),
    ],
)
def test_a_wrong_name_suggests_the_nearest(changes: dict[str, Any], faults: list[str]) -> None:
    named = {name: getattr(PLANT, name) for name in ("obs", "action", "reward", "episode")} | changes
    assert faults_of(plant(), Columns(**named)) == faults


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"obs": ("a", "a")}, "names the column 'a' twice in 'obs'"),
        ({"obs": ("flow", "p [bar]"), "next_obs": ("cost",)}, "next_obs: has 1 columns, but obs has 2"),
        ({"obs": ("flow", "pump"), "action": ("pump",)}, "in 'obs' and in 'action': a policy cannot observe"),
        ({"action_low": (0.0,)}, "has only one of 'action_low' and 'action_high'"),
        ({"split_gaps": 0.5}, "'split_gaps' counts usual steps, so it is above 1"),
        ({"actions": ("a",)}, "There is no setting 'columns.actions'; did you mean 'columns.action'"),
        ({"obs": ("",)}, "at least 1 character"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Transitions.from_dataframe(plant(), columns=changes)


def test_a_star_stands_for_all_that_fit_in_their_order() -> None:
    columns = Columns(
        obs=("Füll*", "*l*w", "p*[bar]"), action=("*pum*", "val*"), reward="-cost", episode="batch"
    )
    log = Transitions.from_dataframe(plant(), columns=columns)
    assert log.metadata.obs_names == PLANT.obs
    assert log.metadata.action_names == PLANT.action
    assert faults_of(plant(), Columns(obs=("x*",))) == [
        "x*: is no column of the table; its columns are Füllstand, flow, p [bar], pump, valve, cost, batch, "
        "trip, operator"
    ]


def test_a_name_that_is_there_twice_is_a_fault_only_where_it_is_used(tmp_path: Path) -> None:
    text = plant().to_csv(index=False)
    (tmp_path / "plant.csv").write_text(text.replace("operator", "flow", 1))
    assert faults_of(tmp_path / "plant.csv") == ["flow: appears twice in the header"]
    (tmp_path / "plant.csv").write_text(text.replace("operator", "", 1))
    assert_same(load_dataset(tmp_path / "plant.csv", columns=PLANT), expected())


@pytest.mark.parametrize(
    ("column", "cells", "fault"),
    [
        ("flow", ["2024-01-05 10:00"] * 21, "flow, row 0: is a date or a time, '2024-01-05 10:00'; name the"),
        ("flow", ["05.01.2024"] * 21, "flow, row 0: is a date or a time, '05.01.2024'"),
        (
            "flow",
            ["auto", "manual", "off"] * 7,
            "flow, row 0: is not numeric, 'auto'; the column has 3 different words (auto, manual, off): "
            "make a column of 0 and 1 for each, or leave it out",
        ),
        ("flow", [1.0] * 20 + [None], "flow, row 20: is empty"),
        ("cost", [1.0] * 5 + ["broken"] + [1.0] * 15, "cost, row 5: is not numeric, 'broken'"),
        ("trip", ["maybe"] * 21, "trip, row 0: is not numeric, 'maybe'"),
        ("batch", ["A"] * 7 + [""] * 14, "episode, row 7: is empty"),
    ],
)
def test_what_is_no_number_gets_an_answer(column: str, cells: list[Any], fault: str, tmp_path: Path) -> None:
    plant(**{column: cells}).to_csv(tmp_path / "plant.csv", index=False)
    assert any(found.startswith(fault) for found in faults_of(tmp_path / "plant.csv"))


def test_dates_and_categories_of_a_frame_get_the_same_answer() -> None:
    dates = plant(flow=pd.date_range("2024-01-05", periods=21, freq="min"))
    assert "flow, row 0: is a date or a time" in faults_of(dates)[0]
    words = plant(flow=pd.Categorical(["auto", "off", "auto"] * 7))
    assert "the column has 2 different words (auto, off)" in faults_of(words)[0]
    missing = plant(flow=pd.array([1.5] * 20 + [None], "Float64"))
    assert faults_of(missing) == ["obs, row 20: 'flow' is NaN"]


def test_kinds_of_frames_that_people_have() -> None:
    frame = plant(when=pd.date_range("2024-01-05", periods=21, freq="min")).set_index("when")
    columns = Columns(**{**to_plain(PLANT), "time": "when"})
    assert_same(Transitions.from_dataframe(frame, columns=columns), expected())
    exact = plant(flow=[Decimal(str(value)) for value in plant()["flow"]])
    assert_same(Transitions.from_dataframe(exact, columns=PLANT), expected())
    with pytest.raises(UserError, match="A lazy frame has no rows yet"):
        Transitions.from_dataframe(pl.from_pandas(plant()).lazy(), columns=PLANT)


def test_switches_and_signs_are_numbers_as_programs_write_them(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("obs_0,obs_1\n" + "True,\N{MINUS SIGN}1.5\nFALSE,2\n" * 6, encoding="utf-8")
    assert load_dataset(path).obs[:2].tolist() == [[1.0, -1.5], [0.0, 2.0]]


def test_a_line_of_units_below_the_header_is_named(tmp_path: Path) -> None:
    lines = plant().to_csv(index=False).splitlines()
    (tmp_path / "plant.csv").write_text("\n".join([lines[0], "m,l/s,bar,-,-,EUR,-,-,-", *lines[1:]]))
    assert faults_of(tmp_path / "plant.csv")[0] == (
        "table, row 0: is not data (units, perhaps); delete the line"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n", "no column has a known name"),
        ("a;b\n", "flow: is no column of the table; its columns are a, b"),
        ("Füllstand,flow,p [bar],pump,valve,cost,batch,trip\n", "has no rows"),
        ("Füllstand,flow,p [bar],pump,valve,cost,batch,trip\n1,2,3,4,5,6,7,0\n", "only 0 usable transitions"),
        ("Füllstand,flow,p [bar],pump,valve,cost,batch,trip\n1,2,3,4,5,6,7,0\n1,2\n", "row 1: has 2 cells"),
        (",".join(f"c{i}" for i in range(30_000)) + "\n1\n", "Füllstand: is no column of the table"),
    ],
    ids=["nothing", "one line", "others", "header", "one row", "ragged", "huge header"],
)
def test_files_that_hold_no_log(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "plant.csv").write_text(text)
    columns = None if text == "\n" else PLANT
    with pytest.raises(UserError, match=message.replace("[", r"\[")):
        load_dataset(tmp_path / "plant.csv", columns=columns)


@given(text=st.text(alphabet="ab1,;.\t\n\"'-:é ", max_size=80))
@settings(max_examples=40, deadline=None)
def test_whatever_is_in_a_text_it_is_a_log_or_one_sentence(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("table") / "log.csv"
    path.write_text(f"a;b\n{text}\n", encoding="utf-8")
    try:
        log = load_dataset(path, columns=Columns(obs=("a",), time="b"), min_transitions=1)
    except UserError:
        return
    assert np.isfinite(log.obs).all()


# Time.


def timed(times: Any, **more: Any) -> Transitions:
    frame = plant(when=times)
    columns = Columns(
        **{
            **{n: getattr(PLANT, n) for n in ("obs", "action", "reward", "episode", "terminated")},
            "time": "when",
            **more,
        }
    )
    return Transitions.from_dataframe(frame, columns=columns)


def notes_of(log: Transitions) -> str:
    return "\n".join(log.metadata.notes)


def test_rows_are_put_in_the_order_of_time_within_each_episode() -> None:
    columns = Columns(
        obs=PLANT.obs, action=PLANT.action, reward="-cost", episode="batch", terminated="trip", time="when"
    )
    frame = plant(when=np.arange(21.0)).sample(frac=1.0, random_state=1)
    frame = pd.concat([frame[frame.batch == batch] for batch in ("A7", "B1", "C9")])
    log = Transitions.from_dataframe(frame, columns=columns)
    assert_same(log, expected())
    assert "rows are put in the order of 'when' within each episode" in notes_of(log)


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.strftime("%Y-%m-%d %H:%M:%S"),
        lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
        lambda t: t.strftime("%d.%m.%Y %H:%M"),
        lambda t: t.strftime("%m/%d/%Y %H:%M:%S"),
        lambda t: t.isoformat() + "Z",
        lambda t: t.strftime("%Y/%m/%d %H:%M"),
        lambda t: t.strftime("%d.%m.%y %H:%M"),
        lambda t: t.strftime("%d.%m.%Y %H:%M:%S,000"),
        lambda t: str(t.timestamp()),
    ],
)
def test_times_are_read_as_people_write_them(write: Callable[[Any], str]) -> None:
    times = [write(t) for t in pd.date_range("2024-01-20 23:50", periods=21, freq="min")]
    log = timed(times)
    assert_same(log, expected())
    assert "'when': one row every 60" in notes_of(log)


def test_gaps_are_told_and_end_episodes_only_if_asked() -> None:
    times = np.arange(21.0)
    times[3:] += 100.0
    log = timed(times)
    assert log.episode_lengths.tolist() == [6, 5, 8]
    assert (
        "1 gap of more than 5 usual steps in 'when' inside episodes, the longest of 101 after row 2: rows on "
        "both sides are taken as neighbours; split_gaps ends episodes there"
    ) in notes_of(log)
    cut = timed(times, split_gaps=50.0)
    assert cut.episode_lengths.tolist() == [2, 3, 5, 8]
    assert cut.metadata.dropped == 3
    assert "episodes end there" in notes_of(cut)
    assert timed(times, split_gaps=200.0).num_episodes == 3


def test_a_clock_that_starts_again_begins_an_episode() -> None:
    frame = plant(when=np.concatenate([np.arange(n) for n in (7, 5, 9)]))
    columns = Columns(obs=PLANT.obs, action=PLANT.action, reward="-cost", terminated="trip", time="when")
    log = Transitions.from_dataframe(frame, columns=columns)
    assert_same(log, expected())
    assert "'when' goes back at 1 rows: an episode is taken to begin there" in notes_of(log)
    mixed = plant(when=np.random.default_rng(0).normal(size=21))
    assert "when: goes back at" in faults_of(mixed, columns)[0]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["01/02/2024"] * 21, "when: row 0: may be day or month first"),
        (["soon"] * 21, "is no time, 'soon'"),
        (["2024-01-01"] * 20 + [""], "row 20: is empty"),
        ([1.0] * 20 + [np.nan], "row 20: has no time, 'nan'"),
    ],
)
def test_times_that_are_none_are_named(cells: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message.replace("when: row", "when, row")):
        timed(cells)


# Bounds, hints, files beside the table, and commands.


def test_bounds_can_be_given_for_any_log(tmp_path: Path) -> None:
    bounded = Columns(action_low=(-1.0,), action_high=(1.0,))
    log = Transitions.from_arrays(**random_fields())
    log.save(tmp_path / "log.npz")
    found = load_dataset(tmp_path / "log.npz", columns=bounded).metadata
    assert (found.action_low, found.action_high) == ((-1.0, -1.0), (1.0, 1.0))
    with pytest.raises(UserError, match="is no table with named columns"):
        load_dataset(tmp_path / "log.npz", columns=PLANT)
    narrow = Columns(obs=PLANT.obs, action=PLANT.action, action_low=(0.0, 0.0), action_high=(1.0, 1.0))
    with pytest.raises(UserError, match=r"'pump' is .* outside its bounds"):
        Transitions.from_dataframe(plant(), columns=narrow)
    wrong = Columns(obs=PLANT.obs, action=PLANT.action, action_low=(0.0,) * 3, action_high=(1.0,) * 3)
    with pytest.raises(UserError, match="has 2 columns, but the action space has 3"):
        Transitions.from_dataframe(plant(), columns=wrong)


def test_a_cost_and_an_unused_end_are_asked_about() -> None:
    frame = plant().rename(columns={"trip": "done"})
    log = Transitions.from_dataframe(frame, columns=Columns(obs=PLANT.obs, reward="cost", episode="batch"))
    assert "the reward 'cost' is made as large as possible; if it is a cost, write '-cost'" in notes_of(log)
    assert "the column 'done' is not used; if it marks where the task ended" in notes_of(log)


def test_a_description_is_proposed_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plant.csv"
    plant(when=pd.date_range("2024-01-05", periods=21, freq="min")).to_csv(
        path, index=False, sep=";", decimal=","
    )
    assert main(["data", "describe", str(path)]) == 0
    said = capsys.readouterr().out
    assert 'action = ["pump", "valve"]' in said
    assert "#   operator: is not numeric, 'Meier'" in said
    log = load_dataset(path)
    assert_same(log, expected())
    assert "columns are as plant.mcetm.toml says" in log.metadata.notes
    assert main(["data", "describe", str(path)]) == 2
    assert "exists already; --force replaces it" in capsys.readouterr().err
    assert main(["data", "describe", str(path), "--force"]) == 0
    capsys.readouterr()
    bounds = ["--action-low", "-1", "--action-high", "1"]
    assert main(["data", "inspect", str(path), "--obs", "flow", *bounds, "--json"]) == 0
    said = capsys.readouterr()
    assert "plant.mcetm.toml says, but for obs, action_low, action_high" in said.err
    card = json.loads(said.out)
    assert (card["metadata"]["obs_names"], card["metadata"]["action_names"]) == (["flow"], ["pump", "valve"])
    (tmp_path / "plant.mcetm.toml").write_text('obs = ["flow"]\nrewards = "cost"\n')
    with pytest.raises(UserError, match=r"plant.mcetm.toml cannot be used: There is no setting 'rewards'"):
        load_dataset(path)
    (tmp_path / "plant.mcetm.toml").write_text("obs = [")
    with pytest.raises(UserError, match="is not TOML"):
        load_dataset(path)


@given(
    names=st.lists(
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\r\n\0"), max_size=12)
        | st.sampled_from(["time", "cost", "done", "pump", "next_x", "x", "episode", "date"]),
        min_size=1,
        max_size=6,
    ),
    cells=st.sampled_from(["1", "0,5", "a", "", "2024-01-05"]),
)
@settings(max_examples=30, deadline=None)
def test_whatever_is_described_can_be_read_back(
    names: list[str], cells: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("table") / "log.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL)
        table.writerow(names)
        table.writerows([[cells if i % 2 else str(row) for i in range(len(names))] for row in range(3)])
    place, found = write_description(path)
    columns = columns_beside(path)
    assert columns is not None
    assert list(columns.obs) == found.fields["obs"]
    assert len(place.read_text(encoding="utf-8").splitlines()) < 40


def test_what_cannot_be_proposed_is_left_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    pd.DataFrame({"x": np.arange(30.0), "const": 1.0, "x_next": np.arange(30.0) + 1}).to_csv(
        path, index=False
    )
    assert main(["data", "describe", str(path)]) == 0
    said = capsys.readouterr().out
    assert 'obs = ["x"]\nnext_obs = ["x_next"]' in said
    assert "# TO DO: say which columns a controller sets" in said
    assert "#   const: it never changes" in said
    np.savez(tmp_path / "log.npz", obs=np.zeros((3, 2)))
    assert main(["data", "describe", str(tmp_path / "log.npz")]) == 2
    assert "is no table" in capsys.readouterr().err


def test_commands_take_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "plant.csv", tmp_path / "plant.npz"
    plant().to_csv(path, index=False)
    options = [*OPTIONS, "--terminated", "trip", "--action-low", "-1", "--action-high", "1"]
    assert main(["data", "convert", str(path), str(out), *options]) == 0
    assert_same(load_dataset(out), expected())
    assert load_dataset(out).metadata.obs_names == PLANT.obs
    assert main(["data", "inspect", str(path), *options, "--json"]) == 0
    shown = capsys.readouterr().out
    card = json.loads(shown[shown.index("{") :])
    assert card["metadata"]["action_low"] == [-1.0, -1.0]
    assert card["without_next"] == 1
    assert main(["data", "inspect", str(path), "--obs", "flow", "--decimal", "x"]) == 2
    assert "columns.decimal" in capsys.readouterr().err
    assert main(["data", "inspect", str(path), "--obs", "flow", "--cost", "cost", "--reward", "cost"]) == 2
    assert "a reward or that of a cost, not both" in capsys.readouterr().err


def test_a_run_keeps_its_columns_and_its_policy_the_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, run = tmp_path / "plant.csv", tmp_path / "run"
    plant().to_csv(path, index=False)
    arguments = ["--dataset", str(path), *OPTIONS, "--terminated", "trip", "--algo", "bc", "--seeds", "1"]
    arguments += ["--steps", "5", "--set", "baselines=[]", "--out", str(run)]
    assert main(["train", *arguments]) == 0
    said = capsys.readouterr().out
    assert "1 terminated row does not say what came after" in said
    assert "2 rows at which the log was cut were dropped" in said
    config = json.loads((run / "config.json").read_text())
    assert config["columns"]["obs"] == list(PLANT.obs)
    assert main(["train", "--resume", str(run)]) == 0
    assert main(["train", "--resume", str(run), "--obs", "flow"]) == 2
    assert "cannot go with --resume" in capsys.readouterr().err
    policy = json.loads((run / "policy" / "seed-0" / "policy.json").read_text())
    assert list(PLANT.obs) in (policy.get("obs_names"), policy.get("about", {}).get("obs_names"))
    page = (run / "report.html").read_text()
    assert "Füllstand, flow, p [bar]" in page
    assert "1 terminated row does not say what came after" in page
    assert "2 rows at which the log was cut were dropped" in page
