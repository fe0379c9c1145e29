import json

import pytest

pytest.importorskip("cyclopts")


def test_a_plan_for_people_and_programs(run):
    options = ["plan", "--n", "1e7", "--k", "1000", "--budget", "10min", "--memory", "16GB"]
    code, out, err = run(*options)
    assert (code, err) == (0, "")
    assert out.startswith("Plan = 10,000,000 rows of 1,000 classes")
    assert "batches of rows" in out
    code, out, _ = run(*options, "--format", "json")
    data = json.loads(out)
    assert (code, data["kind"], data["n"], data["budget"]) == (0, "plan", 10**7, 600.0)
    code, out, _ = run(*options, "--format", "markdown")
    assert code == 0
    assert out.startswith("**Plan = ")


def test_code_1_where_nothing_fits(run):
    code, out, _ = run("plan", "--n", "1e6", "--k", "10", "--budget", "1ms", "--memory", "8GB")
    assert code == 1
    assert "would fit into --budget" in out


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--n", "many", "--n must be a whole number of at least 1, such as 20000 or 1e7; got 'many'"),
        ("--budget", "soon", "--budget must be a positive duration such as 30s, 10min or 2h; got 'soon'"),
        ("--memory", "16 gallons", "--memory must be a positive size such as 500MB, 16GB or 8GiB; got '16 gallons'"),
        ("--members", "0", "--members must be a whole number"),
    ],
)
def test_one_line_on_what_cannot_be_read(run, option, value, words):
    arguments = {"--n": "100", option: value}
    code, _, err = run("plan", *[word for pair in arguments.items() for word in pair])
    assert code == 2
    assert words in err
    assert err.count("\n") == 1
