"""What controllers/generate.py writes is what the terms of the Python package are today."""

import importlib.util
import re
import sys
from unittest.mock import patch

from helpers import REPOSITORY
from stribeck.model.law import LAWS
from stribeck.model.terms import FRICTION_PARAMETERS, TERMS

GENERATOR = REPOSITORY / "controllers" / "generate.py"


def generator():
    """The program as a module; it imports the one beside it."""
    found = importlib.util.spec_from_file_location("controllers_generate", GENERATOR)
    module = importlib.util.module_from_spec(found)
    with patch.object(sys, "path", [str(GENERATOR.parent), *sys.path]):
        found.loader.exec_module(module)
    return module


def test_the_generated_files_follow_the_terms():
    """Run controllers/generate.py after a change of model/terms."""
    for path, text in generator().contents().items():
        assert path.read_text() == text, f"{path} is stale: run controllers/generate.py"


def test_the_check_names_a_stale_file_and_writing_mends_it(tmp_path, capsys):
    """A header in which a term is missing is found and replaced; the rest of the parameter file stays."""
    module = generator()
    for path, text in module.contents().items():
        copy = tmp_path / path.relative_to(REPOSITORY / "controllers")
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text.replace("torque_offset", "torque_set_off"))
    assert module.main(["--check", str(tmp_path)]) == 1
    assert "terms.hpp does not follow model/terms" in capsys.readouterr().err
    assert module.main([str(tmp_path)]) == 0
    assert module.main(["--check", str(tmp_path)]) == 0
    for path, text in module.contents().items():
        assert (tmp_path / path.relative_to(REPOSITORY / "controllers")).read_text() == text


def test_the_header_knows_every_term_and_every_parameter():
    """Each term by name, each parameter with its unit, and the six laws by number."""
    text = (REPOSITORY / "controllers/include/stribeck_controllers/terms.hpp").read_text()
    assert all(f"  {name} = 1u << {place}," in text for place, name in enumerate(TERMS))
    assert all(f"  double {name} = " in text for name in FRICTION_PARAMETERS)
    unfolded = re.sub(r",\n *// ", ", ", text)
    assert all(f"// {', '.join(t.name for t in law.terms)}\n" in unfolded for law in list(LAWS.values())[1:])


def test_no_line_of_c_plus_plus_is_longer_than_100_characters():
    """The limit of ament_cpplint and ament_uncrustify, also in the generated header."""
    sources = [path for path in (REPOSITORY / "controllers").rglob("*.?pp") if "build" not in path.parts]
    assert len(sources) > 20
    assert not [path for path in sources if max(map(len, path.read_text().splitlines())) > 100]
