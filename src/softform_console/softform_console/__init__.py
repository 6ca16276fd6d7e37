"""The operator's page and its server."""
