"""Seconds by stage: what is over, what was stopped, and what goes on."""

import json
from pathlib import Path

import pytest

from mcetm.pipeline.stages import Stages


def test_a_stage_has_its_name_when_it_is_over_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "seconds.json"
    with Stages(path).stage("reward"):
        pass
    stages = Stages(path)
    with pytest.raises(KeyboardInterrupt), stages.stage("energy"):
        raise KeyboardInterrupt
    assert list(json.loads(path.read_text())) == ["reward", "energy, interrupted"]
    # Another process goes on with it, and what was spent before counts.
    kept = Stages(path)
    kept.seconds["energy, interrupted"] = 100.0
    with kept.stage("energy"):
        pass
    found = json.loads(path.read_text())
    assert list(found) == ["reward", "energy"]
    assert 100.0 <= found["energy"] < 110.0
    # A finished stage that is only read again adds its time, and stays finished if that is interrupted.
    with pytest.raises(KeyboardInterrupt), kept.stage("energy"):
        raise KeyboardInterrupt
    assert set(json.loads(path.read_text())) == {"reward", "energy", "energy, interrupted"}
