"""How good the estimates of returns are that need no simulator."""
