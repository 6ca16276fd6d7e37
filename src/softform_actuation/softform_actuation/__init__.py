"""The driver: one commander at a time, deadlines, and safe whenever it is not sure; devices come from families."""
