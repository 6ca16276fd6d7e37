"""The health of the whole stack on one screen."""
