"""Program that mutates the package in its working directory and tests each mutant: run by `bench mutation`.

Writes a JSON list of file, outcome, function and what was changed, for each mutant. `sys.argv`: how many processes, and
where the list goes.
"""

import json
import sys
from pathlib import Path

from mutmut.__main__ import _run
from mutmut.mutation import mutators
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

OUTCOMES = {"survived": "survived", "no tests": "survived", "timeout": "timed_out"}


def main() -> None:
    """Mutate, test, and write what became of it."""
    # A message is tested for its words, not for each letter.
    mutators.mutation_operators[:] = [pair for pair in mutators.mutation_operators if "string" not in pair[1].__name__]
    _run([], int(sys.argv[1]))
    mutants = []
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            outcome = OUTCOMES.get(status_by_exit_code[code], "killed")
            changed = get_diff_for_mutant(name) if outcome == "survived" else ""
            mutants.append([path.stem, outcome, name.partition("__mutmut_")[0].rpartition(".")[2], changed])
    Path(sys.argv[2]).write_text(json.dumps(mutants), encoding="utf-8")


if __name__ == "__main__":
    main()
