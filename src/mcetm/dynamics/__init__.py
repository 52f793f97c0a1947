"""How a next state is predicted: one file per transition model, the sampler and the manifold."""
