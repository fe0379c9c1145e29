import json
from pathlib import Path

import numpy as np
import pytest

from calibrant._validate import InputError

pytest.importorskip("cyclopts")


def test_json_of_anything(capsys):
    from calibrant.cli.flags import print_json

    print_json({"a": np.float64(0.5), "b": [np.nan]})
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": ["nan"]}


def test_places_where_no_file_can_be(tmp_path):
    from calibrant.cli.flags import check_writable
    from calibrant.cli.pipes import DASH

    check_writable(tmp_path / "x.json", "--save")
    with pytest.raises(InputError, match="--save '.*nowhere.x.json': there is no folder"):
        check_writable(tmp_path / "nowhere" / "x.json", "--save")
    with pytest.raises(InputError, match="--save '.*' is a folder: name a file in it"):
        check_writable(tmp_path, "--save")
    with pytest.raises(InputError, match="--save takes a file"):
        check_writable(DASH, "--save")


def test_words_that_name_a_file_and_its_columns():
    from calibrant.cli.flags import Data
    from calibrant.cli.pipes import DASH

    data = Data(y_true="y", y_pred="p_*", by=("site",), input_format="csv")
    words = ["--y-true", "y", "--y-pred", "p_*", "--input-format", "csv"]
    assert data.source(Path("x.csv")) == ["x.csv", *words]
    assert data.source(DASH) == ["FILE", *words]


def test_a_folder_that_is_closed(tmp_path, monkeypatch):
    from calibrant.cli import flags

    monkeypatch.setattr(flags.os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match="nothing can be written to the folder"):
        flags.check_writable(tmp_path / "x.html", "--out")


def test_a_pipe_is_no_part_of_a_data_set(run, monkeypatch, tmp_path):
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n0,0.5\n")
    code, _, err = run("report", str(tmp_path / "a.csv"), "-", "--shards", "--y-true", "y", "--y-pred", "p")
    assert code == 2
    assert "--shards takes files, and" in err
    assert "is a pipe: cat the parts into one" in err
