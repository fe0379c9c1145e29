import json

from calibrant.planning import plan


def test_a_plan_can_be_read_kept_and_sent(machine):
    made = plan(10**6, 10, budget="1min", machine=machine)
    text = repr(made)
    assert text.startswith("Plan = 1,000,000 rows of 10 classes: ")
    assert "of 1 min" in text
    assert "left out" in text
    data = json.loads(made.to_json())
    assert data["kind"] == "plan"
    assert data["seconds"] == made.seconds == sum(choice["seconds"] for choice in data["choices"])
    assert data["memory"] == max(choice["memory"] for choice in data["choices"])
    assert "| test |" in made.to_markdown()
    assert "<table" in made._repr_html_()


def test_kinds_in_words(machine):
    assert "of two classes" in repr(plan(100, machine=machine))
    assert "of numbers" in repr(plan(100, kind="numbers", machine=machine))
    assert "ensembles of 20" in repr(plan(100, members=20, machine=machine))
    assert "drawn at random" in repr(plan(10**8, 100, machine=machine))
