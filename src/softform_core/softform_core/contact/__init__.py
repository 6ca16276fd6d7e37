"""What a simulated body touches: obstacles, and itself."""
