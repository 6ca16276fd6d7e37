"""Two grippers bring a soft object into a target shape, after paper 003: model, camera, loop, arms."""
