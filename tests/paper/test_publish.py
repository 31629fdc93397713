"""Publishing copies a finished run whole, or says what is missing and touches nothing."""

from __future__ import annotations

import pytest

from kvcert.errors import KvcertError
from kvcert.paper.catalogue import EXHIBIT_STEMS, FIGURE_SUFFIXES, FIGURES, TABLE_SUFFIXES, TABLES
from kvcert.paper.publish import publish


@pytest.fixture
def finished(tmp_path):
    results, figures = tmp_path / "results", tmp_path / "figures"
    files = [
        results / name for name in ("verdicts.csv", "integrity.json", "config.json", "report/index.html")
    ]
    files += [results / "claims" / f"C{n}.json" for n in range(1, 8)]
    files += [results / "tables" / f"{stem}{end}" for stem in TABLES for end in TABLE_SUFFIXES]
    files += [figures / f"{stem}{end}" for stem in FIGURES for end in FIGURE_SUFFIXES]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {file.name}")
    return results, figures


def test_everything_is_copied_and_the_page_shows_it(finished, tmp_path):
    out = tmp_path / "out"
    copied = publish(*finished, out, note="On a laptop.")
    assert all(path.read_text() == f"content of {path.name}" for path in copied)
    page = (out / "README.md").read_text()
    assert "On a laptop." in page
    assert "content of verdicts.md" in page
    assert all(f"figures/{stem}.png" in page for stem in FIGURES)


def test_an_unfinished_run_leaves_the_old_folder_alone(finished, tmp_path):
    out = tmp_path / "out"
    publish(*finished, out)
    (finished[0] / "claims" / "C4.json").unlink()
    with pytest.raises(KvcertError, match=r"C4\.json is missing"):
        publish(*finished, out)
    assert (out / "claims" / "C4.json").exists()


def test_exhibits_are_copied_where_they_were_measured(finished, tmp_path):
    results, figures = finished
    stem = EXHIBIT_STEMS["X4"]
    files = [results / "exhibits/X4.json", *(results / "tables" / f"{stem}{end}" for end in TABLE_SUFFIXES)]
    for file in [*files, *(figures / f"{stem}{end}" for end in FIGURE_SUFFIXES)]:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"content of {file.name}")
    out = tmp_path / "out"
    publish(*finished, out)
    assert (out / "exhibits/X4.json").is_file()
    assert (out / f"figures/{stem}.png").is_file()
    page = (out / "README.md").read_text()
    assert "## Exhibits" in page
    assert f"content of {stem}.md" in page
    assert EXHIBIT_STEMS["X1"] not in page
