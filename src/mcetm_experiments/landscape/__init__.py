"""How energies rise on and off the manifold of states (section 5.1)."""
