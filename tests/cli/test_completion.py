import os
import shutil
import subprocess

import pytest

pytest.importorskip("cyclopts")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_valid_and_know_the_commands(run, shell):
    code, out, err = run("completion", shell)
    assert (code, err) == (0, "")
    for word in ("recalibrate", "--fail-if", "y-pred"):
        assert word.lstrip("-") in out
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=out, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("bash"), reason="bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["calibrant", "rec"], {"recalibrate"}),
        (["calibrant", "re"], {"report", "recalibrate"}),
        (["calibrant", "report", "--fail"], {"--fail-if"}),
        (["calibrant", "doctor", "--form"], {"--format"}),
    ],
)
def test_bash_completes(run, words, expected):
    _, script, _ = run("completion", "bash")
    line = " ".join(f"'{word}'" for word in words)
    ask = (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; COMP_LINE={' '.join(words)!r}; COMP_POINT=${{#COMP_LINE}}\n"
        "$(complete -p calibrant | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash"], input=f"{script}\n{ask}", capture_output=True, text=True)
    assert {word.strip() for word in done.stdout.split()} == expected, done.stderr


def test_installing_writes_where_the_shell_looks(run, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    code, _, _ = run("--install-completion")
    assert code == 0
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("recalibrate" in path.read_text() for path in written)
    assert os.environ["HOME"] == str(tmp_path)


def test_another_shell_is_refused(run):
    code, _, err = run("completion", "tcsh")
    assert code == 2
    assert "bash" in err
