"""Studies that regenerate the figures of paper 000 (Sec. V) on the virtual rig."""
