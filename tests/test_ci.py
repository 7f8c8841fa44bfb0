"""`.ci/run` on machines that lack something: programs of our own stand in for apt, Java, node and make."""

import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
RUN = Path(__file__).resolve().parents[1] / ".ci" / "run"
NEEDED = ("bash", "cat", "chmod", "dirname", "mktemp", "rm", "sed", "touch")
# Packages exist once the lists are there; to install one puts a program of a version on the PATH.
APT = """
[ "$1" = update ] && exec touch "$HERE/lists"
[ -e "$HERE/lists" ] || exit 100
for last; do :; done
[ -e "$HERE/has/$last" ] || exit 100
cat "$HERE/has/$last" > "$HERE/bin/$(cat "$HERE/has/$last.name")"
chmod +x "$HERE/bin/"*
"""
JAVA = "#!/bin/sh\necho 'openjdk version \"{}.0.1\"' >&2\n"
NODE = "#!/bin/sh\necho v{}.1.0\n"


@pytest.fixture
def machine(tmp_path):
    """A machine without Java and node, and a function that runs CI on it."""
    programs, has, root = tmp_path / "bin", tmp_path / "has", tmp_path / "root" / ".ci"
    for folder in (programs, has, root):
        folder.mkdir(parents=True)
    for name in NEEDED:
        (programs / name).symlink_to(shutil.which(name))
    shutil.copy(RUN, root / "run")

    def program(name, text):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def ran(packages, *, apt=True):
        for package, (name, text) in packages.items():
            (has / package).write_text(text)
            (has / f"{package}.name").write_text(name)
        program("make", '#!/bin/sh\necho "made $1 CI=$CI"\n')
        program("id", "#!/bin/sh\necho 0\n")
        if apt:
            program("apt-get", f"#!/bin/sh\nHERE={tmp_path}\n{APT}")
        environment = {"PATH": str(programs), "TMPDIR": str(tmp_path)}
        return subprocess.run(
            [str(programs / "bash"), str(root / "run")], capture_output=True, text=True, env=environment, check=False
        )

    return ran


BOTH = "made test CI=1\nmade test-site CI=1\nmade test-oldest CI=1\n"


@pytest.mark.parametrize("package", ["openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"])
def test_lists_are_updated_and_any_java_is_taken(machine, package):
    done = machine({package: ("java", JAVA.format(21)), "nodejs": ("node", NODE.format(20))})
    assert (done.returncode, done.stdout) == (0, BOTH), done.stderr


def test_without_apt_or_with_an_old_java_nothing_is_tested(machine):
    done = machine({}, apt=False)
    assert (done.returncode, done.stdout.count("made")) == (1, 0)
    assert "The tests need Java 17 or newer: install it" in done.stdout
    done = machine({"default-jre-headless": ("java", JAVA.format(11)), "nodejs": ("node", NODE.format(20))})
    assert (done.returncode, done.stdout.count("made")) == (1, 0)
    assert "The tests need Java 17 or newer: install it" in done.stdout
