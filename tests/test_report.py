"""The page of a report: complete, safe, the same for the same seed, and with the right numbers."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np
import pytest

import nits
from mixed_table import mixed
from nits.cli.main import main
from nits.report import detection, page, words
from nits.report.document import Options, Report
from nits.tables.estimator import NITSDensity
from report_tables import HOSTILE, fitted, hostile

LARGEST = 3_000_000
"""Bytes of a page."""


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """What the classifier finds is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection, "ROUNDS", 3)
        yield


@pytest.fixture(scope="module")
def table() -> Any:
    return hostile()


@pytest.fixture(scope="module")
def model(table: Any) -> NITSDensity:
    return fitted(table)


@pytest.fixture(scope="module")
def report(model: NITSDensity, table: Any) -> Report:
    return model.report(table)


class Page(HTMLParser):
    """What a browser would make of a page: its tags, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_every_section_is_there(report: Report) -> None:
    found = Page(report.html)
    sections = [attrs["id"] for tag, attrs in found.tags if tag == "section"]
    assert sections == [*page.SECTIONS, "provenance"]
    assert set(report.sections) == set(sections)
    assert report.reasons == {}


def test_nothing_is_fetched_and_nothing_runs(report: Report) -> None:
    found = Page(report.html)
    tags = {tag for tag, _ in found.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "embed", "i"}
    for _, attrs in found.tags:
        assert not any(name.startswith("on") or name == "src" for name in attrs)
        assert (attrs.get("href") or "#").startswith("#")
    style = report.html.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert len(report.html.encode()) < LARGEST


def test_names_and_values_are_text(report: Report) -> None:
    text = Page(report.html).text
    assert HOSTILE in text
    assert 'a"b&<i>' in text
    assert "<img src=x onerro" in text  # cut where a chart has no room
    assert r"""'"&\x1b\u202e""" in text
    assert all(one.isprintable() or one == "\n" or category(one) == "Zs" for one in report.html)


def test_a_chart_has_words_for_those_who_cannot_see_it(report: Report) -> None:
    labels = [attrs.get("aria-label") for tag, attrs in Page(report.html).tags if tag == "svg"]
    assert len(labels) > 20
    assert all(labels)


def test_the_same_seed_gives_the_same_page(model: NITSDensity, table: Any, report: Report) -> None:
    assert model.report(table).html == report.html
    assert model.report(table[:39], random_state=1).html != model.report(table[:39]).html


def test_likelihoods_are_those_of_the_library(
    model: NITSDensity, table: Any, report: Report
) -> None:
    found = report.sections["likelihood"]
    said = model.score_samples(table, per_column=True)
    assert found.model.mean == pytest.approx(said.sum(1).mean(), rel=1e-6)
    assert found.model.error == pytest.approx(said.sum(1).std() / len(said) ** 0.5, rel=1e-6)
    means = [column.model.mean for column in found.columns]
    np.testing.assert_allclose(means, said.mean(0), rtol=1e-5, atol=1e-6)
    assert found.held_out == model.held_out_
    text = Page(report.html).text
    assert model.held_out_ is not None
    assert f"{words.fixed(model.held_out_, 4)} ± " in text
    assert f"the model {words.fixed(found.model.mean)} {words.fixed(found.model.error)}" in text
    for column in found.columns:
        assert f"{column.name} {words.fixed(column.model.mean)}" in text


def test_surprising_rows_are_those_of_least_density(
    model: NITSDensity, table: Any, report: Report
) -> None:
    said = model.score_samples(table)
    found = report.sections["surprises"].rows
    assert [row.number - 1 for row in found] == np.argsort(said, kind="stable")[:10].tolist()
    assert found[0].nats == pytest.approx(said.min(), rel=1e-6)
    worst = model.score_samples(table, per_column=True)[found[0].number - 1]
    entry = found[0].entries[0]
    assert entry.nats == pytest.approx(worst[model.schema_.names.index(entry.name)], rel=1e-5)


def test_what_columns_were_taken_for(model: NITSDensity, table: Any, report: Report) -> None:
    found = {taken.name: taken for taken in report.sections["overview"].columns}
    for column in model.schema_.columns:
        assert found[column.name].kind == column.kind
        assert found[column.name].reason == column.reason
        missing = found[column.name].missing
        assert missing == pytest.approx(table[column.name].isna().mean())


def test_worst_columns_are_named(report: Report) -> None:
    text = Page(report.html).text
    worst = report.sections["calibration"].worst
    assert f"The worst is {worst.name} : {words.fixed(worst.gap)} off at u" in text
    assert f"The worst is {report.sections['marginals'].worst.name} ," in text
    names = {column.name for column in report.sections["calibration"].columns}
    assert names == {taken.name for taken in report.sections["overview"].columns}


def test_few_rows_are_enough_for_some_sections(model: NITSDensity, table: Any) -> None:
    found = model.report(table[:12])
    assert set(found.reasons) == {"detection", "copies"}
    assert "Not computed. A classifier needs at least 40 rows" in Page(found.html).text
    assert found.sections["likelihood"].gaussian is None
    assert "not computed: 6 rows are too few" in found.html
    with pytest.raises(ValueError, match="needs a table of at least 2 rows, but this has 1"):
        model.report(table[:1])


def test_rows_of_a_long_table_are_drawn_and_it_says_so(model: NITSDensity, table: Any) -> None:
    found = page.of_table(model, table, None, Options(seed=3, rows=39))
    assert "39 of 160 rows (seed 3)" in Page(found.html).text
    assert len(found.sections["surprises"].nats) == 39
    numbers = [row.number for row in found.sections["surprises"].rows]
    said = model.score_samples(table.iloc[[n - 1 for n in numbers]])
    np.testing.assert_allclose(said, [row.nats for row in found.sections["surprises"].rows])


def test_held_out_rows_judge_the_model(model: NITSDensity, table: Any) -> None:
    others = hostile(240)[160:]
    found = model.report(table, others)
    said = model.score_samples(others)
    assert found.sections["likelihood"].model.mean == pytest.approx(said.mean(), rel=1e-6)
    assert found.sections["likelihood"].taught.startswith("learned from all 160 rows")
    assert found.sections["copies"].compared == "held-out rows"
    assert "rows that the model did not learn from" in Page(found.html).text


def test_a_model_with_a_context_has_a_report() -> None:
    table = mixed(90)
    model = fitted(table, context=["city", "seen"])
    found = model.report(table)
    assert found.reasons == {}
    kinds = [taken.kind for taken in found.sections["overview"].columns]
    assert kinds.count("given, categorical") == 1
    seen = {each.name for each in found.sections["detection"].seen}
    assert "seen" in seen


def test_a_notebook_shows_model_and_report(model: NITSDensity, report: Report) -> None:
    shown = Page(model._repr_html_()).text
    assert "7 columns" in shown
    assert HOSTILE in shown
    assert "nats per row held out" in shown
    assert not {"script", "i"} & {tag for tag, _ in Page(model._repr_html_()).tags}
    assert "max_steps" in NITSDensity(max_steps=3)._repr_html_()
    frame = Page(report._repr_html_()).tags[0]
    assert frame[0] == "iframe"
    assert frame[1]["srcdoc"] == report.html
    assert frame[1]["sandbox"] == ""


def test_the_command_line_writes_it(
    model: NITSDensity, table: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "m.nits")
    table.to_csv(tmp_path / "t.csv", index=False)
    argv = ["report", str(tmp_path / "m.nits"), str(tmp_path / "t.csv"), "--rows", "39"]
    assert main([*argv, "-o", str(tmp_path / "r.html")]) == 0
    text = Page((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "39 of 160 rows (seed 0) of t.csv" in text
    assert len(re.findall("SHA-256 [0-9a-f]{64}", text)) == 2
    assert nits.__version__ in text
    assert "r.html: 0." in capsys.readouterr().err
    assert main([*argv, "-o", str(tmp_path / "r.pdf")]) == 2
    assert "-o must name an .html file" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.nits", "r.html", "t.csv"]
