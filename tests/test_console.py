"""Long work says where it is: a bar on a terminal, a line a minute elsewhere."""

import io
import sys
import threading
import time

import pytest

from mcetm import console
from mcetm.console import progress, stage
from mcetm.pipeline.stages import Stages


class Terminal(io.StringIO):
    """Standard error that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def said_within(seconds: float, words: str, capsys: pytest.CaptureFixture[str]) -> str:
    text, deadline = "", time.monotonic() + seconds
    while words not in text and time.monotonic() < deadline:
        time.sleep(0.005)
        text += capsys.readouterr().err
    return text


def test_off_a_terminal_a_stage_is_a_line_and_a_minute_another(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "EVERY", 0.01)
    with stage("energy", place="stage 3 of 7"), progress("plain energy", 1000, unit="steps") as advance:
        advance(0, note="compiling…")
        said = said_within(5, "compiling", capsys)
        assert said.startswith("stage 3 of 7: energy\n")
        assert "stage 3 of 7: plain energy: 0 of 1,000 steps, 0:00, compiling…\n" in said
        advance(250)
        time.sleep(0.01)
        advance(250, note="loss 0.12, accuracy 0.9")
        said = said_within(5, "accuracy", capsys)
        assert "500 of 1,000 steps" in said
        assert " steps/s, 0:00 left, loss 0.12, accuracy 0.9\n" in said
    with stage("calibration", place="stage 4 of 7"):
        assert "stage 4 of 7: calibration: 0:00\n" in said_within(5, "0:00", capsys)
    time.sleep(0.05)
    assert capsys.readouterr().err == "", "nothing goes on"
    assert threading.active_count() == 1 or not any(
        thread.name.endswith("(_tell)") for thread in threading.enumerate()
    )


def test_off_a_terminal_short_work_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("collecting", 10, unit="steps") as advance:
        advance(10)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with stage("calibration", place="stage 4 of 7"):
        pass
    assert "stage 4 of 7: calibration" in terminal.getvalue()
    with progress("a study", 3, unit="parts") as advance:
        advance(1)
        with progress("Gaussian ensemble", 300, unit="steps") as inner:
            inner(100, note="loss 1.0")
            time.sleep(0.3)  # a terminal is drawn eight times a second
    shown = terminal.getvalue()
    assert "1 of 3 parts" in shown
    assert "100 of 300 steps" in shown


def test_the_rate_is_without_what_was_compiled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    job = console._Job("policy", 1000, "steps", 200)
    now = 130.0
    job.advance(100)
    assert job.rate() == pytest.approx(100 / 30), "there is nothing else to go by"
    now = 140.0
    job.advance(100)
    assert job.rate() == pytest.approx(10.0)
    assert job.words() == "400 of 1,000 steps, 10 steps/s, 1:00 left"
    now = 145.0
    assert job.words().endswith("0:55 left")


def test_a_run_counts_its_stages(capsys: pytest.CaptureFixture[str]) -> None:
    stages = Stages(plan=["regressor", "reward", "calibration", "policy: BC", "report"])
    for name in ("regressor", "reward", "termination", "calibration", "calibration", "report"):
        with stages.stage(name):
            pass
    assert capsys.readouterr().err.splitlines() == [
        "stage 1 of 5: regressor",
        "stage 2 of 5: reward",
        "stage 3 of 6: termination",
        "stage 4 of 6: calibration",
        "stage 4 of 6: calibration",
        "stage 5 of 5: report",
    ]
