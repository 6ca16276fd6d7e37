"""What every Softform node shares: QoS profiles, parameter tables, life cycle, message conversions."""
