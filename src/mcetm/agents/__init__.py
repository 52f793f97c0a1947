"""How a policy is learned: one file per algorithm, one for rollouts, one for Bellman targets."""
