"""Round arms of sections that cables bend, meshed by layers, fast enough to track targets with."""
