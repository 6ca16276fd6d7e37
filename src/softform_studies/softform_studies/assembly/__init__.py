"""What the compiled assembly of gradients and Hessians is worth: the same sums by numpy, timed in turns with it."""
