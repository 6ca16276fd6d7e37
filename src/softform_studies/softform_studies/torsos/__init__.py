"""Table III of paper 000: inverse kinematics of the mannequin to the torsos of ten people."""
