"""Common parts of every Softform node: QoS profiles, parameter tables, life cycle, message conversions."""
