"""The array of nearly every function: numbers in double precision, of any shape."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
