"""Bags that run, were cut off, damaged, or lack their metadata: reading writes nothing, and what is whole is saved."""

import shutil
import struct
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rclpy.serialization import serialize_message
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from std_msgs.msg import String

from softform_core.errors import SoftformError
from softform_recording.bag_reading import bag_parts
from softform_recording.bag_recorder import BagRecorder
from softform_recording.cli_import_bag import bag as import_bag
from softform_recording.cli_replay import replay
from softform_recording.message_definitions import standard_definitions
from softform_recording.replayed_topics import OpenRecording
from softform_recording.salvage import salvage_bag

TYPE = "std_msgs/msg/String"


def text(number):
    return serialize_message(String(data=f"{number:0100d}"))


def begun(folder, numbers=range(300)):
    """A recording that still runs, with a chunk of messages for each ten."""
    recorder = BagRecorder(folder)
    recorder.add_topic("/text", TYPE)
    for number in numbers:
        recorder.write("/text", 1000 + number, text(number))
        if number % 10 == 9:
            recorder.flush()
    return recorder


def closed(folder, numbers=range(300)):
    recorder = begun(folder, numbers)
    recorder.close()
    return folder / f"{folder.name}.mcap"


def killed(folder, numbers=range(300)):
    """What `kill -9` leaves."""
    recorder = begun(folder, numbers)
    recorder._storage(recorder._writer).abort()
    return folder / f"{folder.name}.mcap"


def times(bag):
    with OpenRecording(bag_parts(bag)) as recording:
        return [moment for _, moment, _ in recording.messages(recording.topics([], False))]


@contextmanager
def untouched(folder):
    """Every byte, name and time of change of a folder stays."""

    def look():
        return {file: (file.stat().st_mtime_ns, file.is_file() and file.read_bytes()) for file in folder.rglob("*")}

    before = look()
    yield
    assert look() == before


def calls(bag, output):
    """Errors of every command that reads a bag, each called once."""
    wanted = ["--robot", "membrane", "--scans", "/text", "--actuation", "/text:data", "--actuation-unit", "kPa"]
    runs = [(replay, [str(bag)]), (import_bag, [str(bag), *wanted, "--output", str(output / "frames.zarr")])]
    return [str(CliRunner().invoke(command, words).exception) for command, words in runs]


@pytest.mark.parametrize("given", ["walk", "walk/walk.mcap"])
def test_a_recording_that_runs_is_left_alone(tmp_path, given):
    recorder = begun(tmp_path / "walk")
    with untouched(tmp_path / "walk"):
        assert all("is being recorded" in error for error in calls(tmp_path / given, tmp_path))
        with pytest.raises(SoftformError, match="is being recorded"):
            salvage_bag(tmp_path / given, tmp_path / "whole")
        assert not (tmp_path / "whole").exists()
    recorder.close()
    assert times(tmp_path / "walk") == list(range(1000, 1300))


@pytest.mark.parametrize("cut", [0, 1, 400, 30_000])
def test_another_recorders_file_without_an_end_is_left_alone_and_named(tmp_path, cut):
    file = killed(tmp_path / "walk")
    file.write_bytes(file.read_bytes()[: file.stat().st_size - cut])
    file.chmod(0o444)
    with untouched(tmp_path / "walk"):
        for error in calls(tmp_path / "walk", tmp_path):
            assert "still being written, or its recording was cut off" in error
            assert f"./softform record --salvage {tmp_path / 'walk'} --output NEW" in error


@pytest.mark.parametrize("given", ["walk", "walk/walk.mcap", "elsewhere/download.mcap"])
def test_a_closed_file_without_metadata_is_read(tmp_path, given):
    file = closed(tmp_path / "walk")
    (tmp_path / "walk" / "metadata.yaml").unlink()
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(file, tmp_path / "elsewhere" / "download.mcap")
    shutil.copy(file, tmp_path / "elsewhere" / "another.mcap")
    with untouched(tmp_path):
        assert times(tmp_path / given) == list(range(1000, 1300))
        with pytest.raises(SoftformError, match=r"no metadata.yaml, and 2 files .* Give the file that you mean"):
            bag_parts(tmp_path / "elsewhere")


@pytest.mark.parametrize("given", [".", ".."])
def test_the_folder_here_can_be_the_bag(tmp_path, monkeypatch, given):
    folder = closed(tmp_path / "walk").parent
    (folder / "in").mkdir()
    monkeypatch.chdir(folder if given == "." else folder / "in")
    assert times(Path(given)) == list(range(1000, 1300))


def test_metadata_that_a_full_disk_left_empty_is_none(tmp_path):
    closed(tmp_path / "walk")
    (tmp_path / "walk" / "metadata.yaml").write_text("")
    assert len(times(tmp_path / "walk")) == 300


def test_a_part_that_was_only_just_begun_does_not_spoil_those_before_it(tmp_path):
    closed(tmp_path / "walk")
    (tmp_path / "walk_2").mkdir()
    (tmp_path / "walk_2" / "walk_2.mcap").touch()
    assert len(times(tmp_path / "walk")) == 300


def test_a_database_that_is_written_is_left_alone(tmp_path):
    definitions = standard_definitions()
    with Writer(tmp_path / "walk", version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        writer.write(writer.add_connection("/text", TYPE, typestore=definitions), 1, text(1))
    (tmp_path / "walk" / "metadata.yaml").unlink()
    with untouched(tmp_path / "walk"):
        assert times(tmp_path / "walk") == [1]
    (tmp_path / "walk" / "walk.db3-wal").touch()
    with untouched(tmp_path / "walk"), pytest.raises(SoftformError, match=r"walk\.db3 is still being written"):
        bag_parts(tmp_path / "walk")


@pytest.mark.parametrize("place", np.linspace(0.01, 0.999, 40))
def test_no_flipped_bit_is_read_over(tmp_path, place):
    """Wherever it is, messages are the recorded ones, or an error says what is to be done."""
    file = closed(tmp_path / "walk", range(40))
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 0x10
    file.write_bytes(content)
    for bag in (tmp_path / "walk", file):
        with untouched(tmp_path / "walk"):
            try:
                with OpenRecording(bag_parts(bag)) as recording:
                    found = list(recording.messages(recording.topics([], False)))
            except SoftformError as error:
                assert f"./softform record --salvage {bag} --output NEW" in str(error)
            else:
                assert found == [("/text", 1000 + number, text(number)) for number in range(40)]
    count, left_out = salvage_bag(file, tmp_path / "whole")
    assert count >= 20 and (count == 40 or left_out)
    assert set(times(tmp_path / "whole")) <= set(range(1000, 1040))


def test_fewer_messages_than_a_bag_promises_are_an_error(tmp_path):
    closed(tmp_path / "walk")
    metadata = tmp_path / "walk" / "metadata.yaml"
    metadata.write_text(metadata.read_text().replace("message_count: 300", "message_count: 301"))
    with pytest.raises(SoftformError, match="300 messages could be read where it says that it holds 301"):
        times(tmp_path / "walk")


@pytest.mark.parametrize(("cut", "expected"), [(0, 300), (1, 300), (400, 290), (3000, 280)])
def test_what_a_crash_left_is_whole_in_a_new_bag(tmp_path, cut, expected):
    file = killed(tmp_path / "walk")
    file.write_bytes(file.read_bytes()[: file.stat().st_size - cut])
    with untouched(tmp_path / "walk"):
        count, left_out = salvage_bag(tmp_path / "walk", tmp_path / "whole")
    assert count == expected and bool(cut) == bool(left_out)
    assert times(tmp_path / "whole") == list(range(1000, 1000 + expected))
    with pytest.raises(SoftformError, match="exists already"):
        salvage_bag(tmp_path / "walk", tmp_path / "whole")
    assert len(times(tmp_path / "whole")) == expected


def test_a_damaged_chunk_is_left_out_and_those_behind_it_are_saved(tmp_path):
    file = closed(tmp_path / "walk")
    content = bytearray(file.read_bytes())
    content[content.index(b"%0100d" % 155) + 50] ^= 1
    file.write_bytes(content)
    with pytest.raises(SoftformError, match="Chunk checksum mismatch"):
        times(tmp_path / "walk")
    count, left_out = salvage_bag(tmp_path / "walk", tmp_path / "whole")
    assert count == 290 and left_out == [f"1 damaged chunks of {file}"]
    assert times(tmp_path / "whole") == [*range(1000, 1150), *range(1160, 1300)]


def test_a_chunk_that_a_power_cut_left_empty_ends_the_bag(tmp_path):
    whole = killed(tmp_path / "walk", range(30)).read_bytes()
    torn = int(0.8 * len(whole))  # within the last of three chunks; the record around its messages is whole
    (tmp_path / "walk" / "walk.mcap").write_bytes(whole[:torn] + bytes(len(whole) - torn))
    assert salvage_bag(tmp_path / "walk", tmp_path / "whole")[0] == 20


@pytest.mark.parametrize("last", [b"", bytes(5000)])
def test_a_last_part_that_a_power_cut_emptied_costs_nothing_else(tmp_path, last):
    killed(tmp_path / "walk")
    (tmp_path / "walk_2").mkdir()
    (tmp_path / "walk_2" / "walk_2.mcap").write_bytes(last)
    count, left_out = salvage_bag(tmp_path / "walk", tmp_path / "whole")
    assert count == 300 and len(left_out) == bool(last)


def test_messages_out_of_order_are_saved_in_order(tmp_path):
    definitions = standard_definitions()
    with Writer(tmp_path / "walk", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        connection = writer.add_connection("/text", TYPE, typestore=definitions)
        for moment in (3, 1, 2):
            writer.write(connection, moment, text(moment))
    file = tmp_path / "walk" / "walk.mcap"
    file.write_bytes(file.read_bytes()[:-100])
    salvage_bag(tmp_path / "walk", tmp_path / "whole")
    assert times(tmp_path / "whole") == [1, 2, 3]


def test_channels_that_are_alike_become_one(tmp_path):
    """As files have that were merged."""
    definitions = standard_definitions()
    with Writer(tmp_path / "walk", version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        for moment, topic in enumerate(("/left", "/rght")):
            writer.write(writer.add_connection(topic, TYPE, typestore=definitions), moment, text(moment))
    file = tmp_path / "walk" / "walk.mcap"
    file.write_bytes(file.read_bytes()[:-100].replace(b"/rght", b"/left"))
    assert salvage_bag(file, tmp_path / "whole")[0] == 2 and times(tmp_path / "whole") == [0, 1]
    with Reader(tmp_path / "whole") as whole:
        assert [one.topic for one in whole.connections] == ["/left"]


def test_salvage_says_what_is_no_bag(tmp_path):
    with pytest.raises(SoftformError, match="holds no .mcap file"):
        salvage_bag(tmp_path, tmp_path / "whole")
    (tmp_path / "a.mcap").write_bytes(b"nonsense, and more of it")
    with pytest.raises(SoftformError, match="holds no whole record"):
        salvage_bag(tmp_path, tmp_path / "whole")
    assert not (tmp_path / "whole").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.mcap", b"nonsense, and more of it", "is no MCAP file. Get it again"),
        ("a.mcap", b"version https://git-lfs.github.com/spec/v1\n", "is no MCAP file. Run `git lfs pull`"),
        ("a.mcap", b"", "has no end"),
        ("a.db3", b"nonsense", "cannot be read: .* Get it again"),
        ("a.yaml", b"a: 1", r"is no bag. Give the folder of one, or its file \(.mcap, .db3\)"),
    ],
)
def test_what_is_no_bag_is_named(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SoftformError, match=said):
        times(tmp_path / name)


def test_every_chunk_and_the_summary_have_checksums(tmp_path):
    content = closed(tmp_path / "walk", range(20)).read_bytes()
    with Reader(tmp_path / "walk" / "walk.mcap") as bag:
        chunks = [chunk.chunk_start_offset for chunk in bag.storage.chunks]
    checksums = [struct.unpack_from("<I", content, chunk + 33)[0] for chunk in chunks]
    assert len(chunks) == 2 and all(checksums) and struct.unpack("<I", content[-12:-8])[0]
