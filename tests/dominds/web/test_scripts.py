"""The modules of the pages' scripts in one file."""

import re
from pathlib import Path

import pytest

from dominds.web.scripts import NotBundled, bundle

SCRIPTS = Path(__file__).parents[3] / "static" / "js"


def test_modules_become_functions_that_need_each_other() -> None:
    result = bundle(
        {
            "app.js": 'import { tr as say, more } from "./words.js";\nimport "./other.js";\nsay(more);\n',
            "other.js": "// nothing to give\nlet count = 0;\n",
            "words.js": "/** Says it. */\nexport function tr(text) {\n  return text;\n}\nexport const more = 1;\n",
        }
    )
    assert 'const { tr: say, more } = need("words.js");\nneed("other.js");\nsay(more);' in result
    assert "give({ tr, more });" in result and "import " not in result and "export " not in result
    assert "nothing to give" not in result and "Says it." not in result


@pytest.mark.parametrize("line", ['import words from "./words.js";', "export default 1;", "export { tr };"])
def test_a_form_that_is_not_known_is_refused(line: str) -> None:
    with pytest.raises(NotBundled, match=re.escape(line)):
        bundle({"app.js": f"{line}\n"})


def test_no_module_needs_itself_through_others() -> None:
    needs = {path.name: set(re.findall(r'from "\./([\w.]+)"', path.read_text())) for path in SCRIPTS.glob("*.js")}
    while ready := {name for name, wanted in needs.items() if not wanted & needs.keys()}:
        needs = {name: wanted for name, wanted in needs.items() if name not in ready}
    assert not needs
