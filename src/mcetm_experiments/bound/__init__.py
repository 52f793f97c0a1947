"""Random finite MDPs: how often the theory of section 4.3 is true, and how tight its bound is."""
