"""Quasi-static simulation of the robot's body: FEM of a hyperelastic membrane over pressurised chambers."""

from softform_core.simulation.equilibrium import Equilibrium, NoEquilibriumError, solve_equilibrium
from softform_core.simulation.membrane import Membrane, build_membrane, membrane_on_mesh
from softform_core.simulation.sensitivity import equilibrium_sensitivity
from softform_core.simulation.store import SimulationStore, open_simulation

__all__ = [
    "Equilibrium",
    "Membrane",
    "NoEquilibriumError",
    "SimulationStore",
    "build_membrane",
    "equilibrium_sensitivity",
    "membrane_on_mesh",
    "open_simulation",
    "solve_equilibrium",
]
