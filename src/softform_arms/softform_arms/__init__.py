"""Arms as a family of devices: joint positions are streamed to their controller, and safe is to hold with brakes."""
