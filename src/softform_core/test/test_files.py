"""What is written goes where it was sent to: devices, pipes and links are not replaced by files."""

import os
import stat
import threading
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from softform_core.errors import SoftformError
from softform_core.files import only_writer, write_atomically, write_figure


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    path, heard = tmp_path / "pipe", []
    os.mkfifo(path)
    listener = threading.Thread(target=lambda: heard.append(path.read_bytes()))
    listener.start()
    write_atomically(path, b"figures")
    listener.join(10.0)
    assert heard == [b"figures"] and stat.S_ISFIFO(path.stat().st_mode)


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    (tmp_path / "shelf").mkdir()
    file, link = tmp_path / "shelf" / "a.json", tmp_path / "latest.json"
    link.symlink_to("shelf/a.json")
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert file.read_bytes() == content and link.is_symlink()
    assert [one.name for one in file.parent.iterdir()] == ["a.json"]


def test_a_picture_of_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(SoftformError, match="'xyz' is no format of pictures"):
        write_figure(tmp_path / "a.xyz", Figure())
    assert not [*tmp_path.iterdir()]
    write_figure(tmp_path / "a.PNG", Figure(figsize=(1.0, 1.0)))
    write_figure(tmp_path / "b", Figure(figsize=(1.0, 1.0)))
    assert {one.read_bytes()[1:4] for one in tmp_path.iterdir()} == {b"PNG"}


def test_the_folder_here_can_hold_a_lock_and_the_root_cannot(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with only_writer(Path(), "writing"):
        assert (tmp_path / ".here.lock").read_bytes()
    with pytest.raises(SoftformError, match="cannot be a store"), only_writer(Path("/"), "writing"):
        pass
