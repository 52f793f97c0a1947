"""A trial from outside: bad inputs of every kind, and what becomes of them."""
