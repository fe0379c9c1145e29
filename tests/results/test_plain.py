import json

import numpy as np

from calibrant.results import jsonable


def test_json_has_no_nan_or_infinity():
    assert json.loads(json.dumps(jsonable({"a": np.inf, "b": np.array([np.nan, 1.0])}), allow_nan=False)) == {
        "a": "inf",
        "b": ["nan", 1.0],
    }
