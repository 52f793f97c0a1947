"""The paper's experiments: one command and one figure or table each."""
