"""The arm of bellows: sections of parallel bellows one behind the other (paper 000, Sec. V-A4)."""
