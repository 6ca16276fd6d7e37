"""A relay in the supply of pumps and valves that is closed only while a live driver says so."""
