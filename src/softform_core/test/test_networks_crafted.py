"""Crafted model files, read in a process of their own: each gives the numbers of the true one, or an error."""

import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import SavedNetwork, export
from softform_core.networks.tip import TipNetwork

WIDTHS = {"BININT1": 1, "BININT2": 2, "BININT": 4, "BINGET": 1, "BINPUT": 1, "LONG_BINGET": 4, "LONG_BINPUT": 4}
HUGE = (-1, 0, 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**80)

READ = """
import faulthandler, pickle, resource, sys
import numpy as np
from softform_core.errors import SoftformError
from softform_core.networks.mlp_weights import extract_mlp
from softform_core.networks.saved_network import SavedNetwork
faulthandler.enable()
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
true, files = pickle.load(open(sys.argv[1], "rb"))
for name, file in files:
    print(name, end=": ", flush=True)
    try:
        network = SavedNetwork(file)
        found, mlp = network.arrays(), extract_mlp(network)
    except (ValueError, SoftformError) as error:
        print("error", error, flush=True)
        continue
    same = found.keys() == true.keys() and all(np.array_equal(found[one], true[one]) for one in true)
    print("same" if same else "OTHER", flush=True)
"""


@pytest.fixture(scope="module")
def file() -> bytes:
    torch.manual_seed(0)
    x, y = torch.rand(9, 2, dtype=torch.float64), torch.rand(9, 3, dtype=torch.float64)
    return export(TipNetwork(x, y, [4], one_scale=False))


def entries(file: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(content: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def with_pickle(file: bytes, change: bytes) -> bytes:
    content = entries(file)
    return packed(content | {next(name for name in content if name.endswith("/data.pkl")): change})


def in_a_child(true: bytes, files: list[tuple[str, bytes]], folder: Path) -> list[str]:
    """What became of each, in order; a crash of the child is a failure that names the file."""
    (folder / "files").write_bytes(pickle.dumps((SavedNetwork(true).arrays(), files)))
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder / "files")], capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, f"{lines[-1:]} crashed: {done.stderr[-2000:]}"
    assert len(lines) == len(files)
    return [line.split(": ", 1)[1] for line in lines]


def integer(value: int) -> bytes:
    return pickle.LONG1 + bytes([16]) + value.to_bytes(16, "little", signed=True)


def mutants_of_numbers(file: bytes) -> list[tuple[str, bytes]]:
    """Each number of the pickle made others: those of the program's, shapes, places, lengths and references alike."""
    (data,) = [data for name, data in entries(file).items() if name.endswith("/data.pkl")]
    found = []
    for operation, value, place in pickletools.genops(data):
        width = WIDTHS.get(operation.name)
        if width is None:
            continue
        for other in sorted({value + 1, value - 1, value ^ 0x40, -value, *HUGE} - {value}):
            if operation.name.startswith("BININT"):
                new = integer(other)
            elif operation.name.endswith("PUT"):
                new = pickle.LONG_BINPUT + struct.pack("<I", other % 2**32)
            else:
                new = pickle.LONG_BINGET + struct.pack("<I", other % 2**32)
            changed = data[:place] + new + data[place + 1 + width :]
            found.append((f"{operation.name}@{place}={other}", with_pickle(file, changed)))
    return found


def test_no_number_of_the_file_reads_what_is_not_the_files(file, tmp_path):
    mutants = mutants_of_numbers(file)
    assert len(mutants) > 500
    became = in_a_child(file, mutants, tmp_path)
    assert "OTHER" not in became, [name for (name, _), end in zip(mutants, became, strict=True) if end == "OTHER"]
    assert sum(end.startswith("error") for end in became) > 0.5 * len(mutants)


def test_no_byte_of_the_directory_of_the_file_crashes_the_reader(file, tmp_path):
    """Sizes, places, methods and names of its entries, at its end; a changed number is found by its checksum."""
    start = file.index(b"PK\x01\x02")
    mutants = [
        (f"{place}^{mask}", file[:place] + bytes([file[place] ^ mask]) + file[place + 1 :])
        for place in range(start, len(file))
        for mask in (0x01, 0xFF)
    ]
    became = in_a_child(file, mutants, tmp_path)
    assert "OTHER" not in became


class _Command:
    def __reduce__(self):
        return os.system, ("touch /tmp/never",)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: {name: data[:-8] if "/data/" in name else data for name, data in content.items()},
        lambda content: {name: data for name, data in content.items() if not name.endswith("/data/0")},
        lambda content: content | {next(n for n in content if n.endswith("data.pkl")): pickle.dumps(_Command())},
        lambda content: content | {"other/data.pkl": b"\x80\x02."},
    ],
    ids=["short storages", "no storage", "a command", "two pickles"],
)
def test_what_does_not_agree_is_rejected(file, change):
    with pytest.raises(ValueError):
        SavedNetwork(packed(change(entries(file))))


def test_packed_entries_are_not_unpacked(file):
    with pytest.raises(ValueError, match="is packed"):
        SavedNetwork(packed(entries(file), zipfile.ZIP_DEFLATED))


MODULE = b"\x80\x02c__torch__\nA\n)\x81}"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (MODULE + b"(X\x01\0\0\0ac__torch__\nA\n)\x81q\1X\x01\0\0\0bh\1ub.", "'b' is there twice"),
        (b"\x80\x02c__torch__\nA\n)\x81q\0}(X\x01\0\0\0ah\0ub.", "is there twice"),
        (MODULE + b"(X\x06\0\0\0arraysK\x01ub.", "calls something 'arrays'"),
        (b"\x80\x02ccollections\nOrderedDict\n)R}(X\x01\0\0\0aK\x01ub.", "than a module"),
        (b"\x80\x02r\xff\xff\xff\xff.", "."),
        (b"\x80\x02\x8e" + b"\xff" * 7 + b"\x7f.", "."),
    ],
    ids=["a module twice", "a module in itself", "a method", "no module", "a place", "a length"],
)
def test_a_pickle_fills_modules_alone(file, data, said):
    with pytest.raises(ValueError, match=said):
        SavedNetwork(with_pickle(file, data))


def test_layers_that_do_not_fit_together_are_told(file):
    network = SavedNetwork(file)
    assert len(extract_mlp(network).weights) == 2
    network.output_scale = network.output_scale[:2]
    with pytest.raises(Exception, match="do not fit together"):
        extract_mlp(network)


def test_torch_loads_no_model_file():
    sources = [path.read_text() for path in Path(__file__).parents[2].glob("softform_*/softform_*/**/*.py")]
    assert len(sources) > 300 and not any("jit.load" in text for text in sources)
