"""Policies as estimators ask them: their actions, and the density of an action."""

import numpy as np
import pytest

from mcetm import Policy, UserError
from mcetm.estimates import Asked
from tests.estimates.problems import acting, line_log

OBS = np.zeros((1, 1), np.float32)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (0.0, 4.0)])
@pytest.mark.parametrize("spread", [None, 0.5])
def test_a_density_is_one_over_all_actions(bounds: tuple[float, float], spread: float | None) -> None:
    asked = Asked("policy", acting(0.0, 0.3, spread=spread).within((bounds[0],), (bounds[1],)))
    wide = 1.0 if spread is None else 0.0  # noise around an action may go beyond the bounds
    grid = np.linspace(bounds[0] - wide, bounds[1] + wide, 20_001)[:, None]
    density = np.exp(asked.log_density(np.repeat(OBS, len(grid), axis=0), grid, np.array([0.1])))
    assert float(density.sum() * (grid[1, 0] - grid[0, 0])) == pytest.approx(1.0, abs=0.01)


def test_a_policy_with_one_action_has_it_every_time_and_another_has_not() -> None:
    obs = np.linspace(-1, 1, 5, dtype=np.float32)[:, None]
    once = Asked("mode", acting(-1.0)).actions(obs, 3, seed=0)
    assert once.shape == (5, 3, 1)
    assert (once == once[:, :1]).all()
    drawn = Asked("samples", acting(-1.0, spread=0.5)).actions(obs, 3, seed=0)
    assert (drawn != drawn[:, :1]).any()
    np.testing.assert_array_equal(drawn, Asked("samples", acting(-1.0, spread=0.5)).actions(obs, 3, seed=0))


def test_a_policy_for_other_observations_is_refused() -> None:
    log = line_log(3)
    wide = Policy(acting(1.0), {})
    assert Asked.of(wide, "fits", log).name == "fits"
    other = log.with_metadata(source="other")
    narrow = type(other)(
        **{name: getattr(other, name) for name in ("reward", "terminated", "truncated", "action")},
        obs=np.repeat(other.obs, 2, axis=1),
        next_obs=np.repeat(other.next_obs, 2, axis=1),
    )
    with pytest.raises(UserError, match="seed-0 has observations of width 1, and those of the log have 2"):
        Asked.of(wide, "seed-0", narrow)
