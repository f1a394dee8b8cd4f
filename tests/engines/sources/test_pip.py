"""uv's settings in pip's words."""

from pathlib import Path

from felicity.engines.sources.pip import read_uv_settings


def test_without_settings_nothing_is_said(no_settings: Path) -> None:
    assert read_uv_settings({"XDG_CONFIG_HOME": str(no_settings)}, Path.cwd()) == {}


def test_variables_count_before_files(no_settings: Path) -> None:
    Path("uv.toml").write_text('index-url = "https://file.example/simple"\n')
    environment = {"UV_DEFAULT_INDEX": "https://variable.example/simple"}
    assert read_uv_settings(environment, Path.cwd())["index-url"] == "https://variable.example/simple"


def test_all_extra_indexes_are_kept_and_explicit_ones_left_out(no_settings: Path) -> None:
    Path("pyproject.toml").write_text(
        """
        [[tool.uv.index]]
        name = "one"
        url = "https://one.example/simple"
        [[tool.uv.index]]
        name = "pinned"
        url = "https://pinned.example/simple"
        explicit = true
        [[tool.uv.index]]
        url = "./wheels"
        format = "flat"
        """
    )
    found = read_uv_settings({"UV_INDEX": "https://a.example b=https://b.example"}, Path.cwd())
    assert found == {
        "extra-index-url": "https://a.example https://b.example https://one.example/simple",
        "find-links": (Path.cwd() / "wheels").as_uri(),
    }


def test_a_project_above_the_current_folder_counts(no_settings: Path) -> None:
    Path("uv.toml").write_text('[pip]\nindex-url = "https://up.example/simple"\n')
    below = Path.cwd() / "deep" / "down"
    below.mkdir(parents=True)
    assert read_uv_settings({}, below) == {"index-url": "https://up.example/simple"}


def test_settings_can_be_switched_off_or_named(no_settings: Path) -> None:
    Path("uv.toml").write_text('index-url = "https://near.example/simple"\n')
    other = no_settings / "other.toml"
    other.write_text('index-url = "https://named.example/simple"\n')
    assert read_uv_settings({"UV_NO_CONFIG": "1"}, Path.cwd()) == {}
    named = read_uv_settings({"UV_CONFIG_FILE": str(other)}, Path.cwd())
    assert named == {"index-url": "https://named.example/simple"}


def test_a_password_goes_into_the_address_escaped(no_settings: Path) -> None:
    environment = {
        "UV_INDEX": "my.lab=https://lab.example/simple",
        "UV_INDEX_MY_LAB_USERNAME": "ann",
        "UV_INDEX_MY_LAB_PASSWORD": "a/b@c",
    }
    found = read_uv_settings(environment, Path.cwd())
    assert found == {"extra-index-url": "https://ann:a%2Fb%40c@lab.example/simple"}


def test_a_broken_settings_file_is_passed_over(no_settings: Path) -> None:
    Path("uv.toml").write_text("index-url = ")
    assert read_uv_settings({}, Path.cwd()) == {}
