"""Networks, their model files and their cards; millimetres inside."""
