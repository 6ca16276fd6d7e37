"""Starts, orders, records and demonstrates the stack; installs launch, config and models."""
