"""The section "Verdict" of a report says what the console said of the fit."""

from dataclasses import replace

import pytest

from reporting import assessed, file_of, logs_of, provenance_of, stated_of
from stribeck.evaluate.judgement import judge
from stribeck.model.estimate import at_bound, estimate_of
from stribeck.model.verdict import Reason, Verdict
from stribeck.report.document import render
from stribeck.report.words import standing, verdict


@pytest.fixture(scope="module")
def logs():
    return logs_of("m3")[:2]


def statements(files, logs):
    """Tones and sentences of the report."""
    found = assessed(files, logs)
    return verdict(found, judge(found))


WIDE = Reason("intervals", "doubtful", "kt is known to within a third only: record another load")


@pytest.mark.parametrize(("reasons", "use", "tone"), [((), "usable", "good"), ((WIDE,), "doubtful", "doubt")])
def test_the_verdict_of_the_fit_comes_first_with_its_reasons(logs, reasons, use, tone):
    """In the words of the console; the table has a column of it, and "best" is in that of the comparison."""
    file = file_of("m3", provenance_of(logs), verdict=Verdict(reasons))
    found = statements({"m3": file}, logs)
    assert found[0] == (tone, f"Verdict on the fit of M3: {use}.")
    printed = [line.strip() for line in file.verdict.lines()[1:]]
    assert [text.removeprefix("M3, ") for _, text in found[1 : 1 + len(reasons)]] == printed
    told = assessed({"m3": file}, logs)
    page = render(told, judge(told), {}).decode()
    head, row = page.split("<table")[1].split("</tr>")[:2]
    assert head.split("<th")[-1].split(">", 1)[1].startswith("verdict on the fit")
    assert head.split("<th")[-2].split(">", 1)[1].startswith("compared with the best")
    cells = [cell.split(">", 1)[1].split("<")[0] for cell in row.split("<td")[-2:]]
    assert cells == ["best", use]


def test_a_file_without_a_verdict_claims_none(logs):
    """Files of other programs have none."""
    found = statements({"m3": file_of("m3", None)}, logs)
    assert not any(text.startswith("Verdict") for _, text in found)


def test_parameters_have_the_classes_of_the_console(logs):
    """Loosely determined is not the same as not determined, nor as at a bound."""
    stated = stated_of("m3")
    kt, r, base = (stated[name].value for name in ("kt", "R", "friction_base"))
    stated |= {
        "R": at_bound(r, "ohm", "upper"),
        "kt": estimate_of(kt, "N m/A", (0.8 * kt, 1.2 * kt)),
        "friction_base": estimate_of(base, "N m", None),
    }
    file = file_of("m3", provenance_of(logs), stated=stated)
    (tone, text) = next(one for one in statements({"m3": file}, logs) if "identified parameters" in one[1])
    assert tone == "doubt"
    assert text.startswith(
        f"Of {len(stated)} identified parameters of M3, {len(stated) - 3} are determined, 1 loosely determined (kt), "
        "1 not determined (friction_base) and 1 at a search bound (R)."
    )
    (one,) = assessed({"m3": file}, logs).files
    words = {known.name: standing(known) for known in one.known}
    assert words["kt"].startswith("loosely determined: between ")
    assert words["friction_base"].startswith("not determined: ")
    assert words["R"].startswith("at its upper search bound")


def test_loosely_determined_values_are_a_note_and_all_determined_ones_good_news(logs):
    """Neither is a doubt about the file."""
    stated = stated_of("m3")
    kt = stated["kt"].value
    loose = stated | {"kt": estimate_of(kt, "N m/A", (0.8 * kt, 1.2 * kt))}
    tones = []
    for estimates in (loose, stated):
        file = replace(file_of("m3", provenance_of(logs)), stated=estimates)
        found = statements({"m3": file}, logs)
        tones += [tone for tone, text in found if "identified parameters" in text]
    assert tones == ["note", "good"]
