"""The rod that tendons bend (papers 002 and 004)."""
