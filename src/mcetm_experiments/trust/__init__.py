"""Where a trust region trusts, and where it must not."""
