"""Small networks and distributions, written for one example and `vmap`ped outside."""
