"""A critic that is wrong is found out by one that is right."""

import numpy as np

from mcetm.estimates import Asked, FQESettings, Quantity, hold_tournament
from mcetm.estimates.tournament import projected
from tests.estimates.problems import HORIZON, acting, line_log

TRAINED = FQESettings(critics=1, width=16, depth=1, batch_size=64, steps=300, learning_rate=1e-2, replicas=1)
UNTRAINED = FQESettings(critics=1, width=16, depth=1, batch_size=64, steps=1, replicas=1)


def test_settings_that_learned_beat_settings_that_did_not() -> None:
    asked = [Asked("steer", acting(-1.0))]
    found = hold_tournament(asked, line_log(60), Quantity(HORIZON), [UNTRAINED, TRAINED])
    assert found.winner == TRAINED
    assert found.scores[1] < 0.5 * found.scores[0]


def test_noise_goes_out_of_the_score_and_a_fault_stays() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=8000), rng.normal(size=8000)
    noise = rng.normal(size=8000)
    assert projected(noise, first, second) < 0.2
    # What is wrong where the other critic's values are high is only seen with its help.
    fault = np.where(second > 0.0, 1.0, -1.0)
    assert projected(fault + noise, first, second) > 0.9
    assert projected(fault + noise, first, first) < 0.3
