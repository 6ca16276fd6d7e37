"""What all bodies share: equilibria by one Newton method, sensitivities, material laws, sampling and stores."""
