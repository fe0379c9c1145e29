import json

import numpy as np
import pytest

pytest.importorskip("cyclopts")


def test_help_names_every_command(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("demo", "report", "estimate", "test", "simulate", "reproduce"):
        assert command in out


def test_json_of_anything(capsys):
    from calibrant.cli.app import print_json

    print_json({"a": np.float64(0.5), "b": [np.nan]})
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": ["nan"]}
