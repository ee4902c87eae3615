"""Every block of the guide runs, prints the output shown, and draws the stored figures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.chapters import GUIDE, agree, blocks, chapters, commands, run
from docs.diagrams import for_pages
from softgaze.explain import Attention

ENGLISH, KOREAN = chapters(), chapters(GUIDE / "ko")
HEADINGS = {
    "en": [
        "The idea",
        "The formula",
        "The shapes",
        "In code",
        "The picture",
        "Exercise",
        "What to run next",
        "References",
    ],
    "ko": [
        "핵심 아이디어",
        "수식",
        "텐서의 형태",
        "코드로 보기",
        "그림으로 보기",
        "연습 문제",
        "이어서 해 볼 것",
        "참고 문헌",
    ],
}
IMAGE = re.compile(r"!\[([^]]*)\]\(([^)]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def name(path):
    return path.relative_to(GUIDE).as_posix()


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """Run all chapters in order; return the blocks with their outputs, and the directory of the figures."""
    directory = tmp_path_factory.mktemp("guide")
    return [*run(ENGLISH, directory)], directory / "figures"


# --- code -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", ENGLISH, ids=name)
def test_the_code_prints_the_output_shown(guide, chapter):
    ran = [each for each in guide[0] if each.chapter == chapter]
    assert len(ran) >= 3
    for result in ran:
        assert result.is_as_shown, f"{name(chapter)}:{result.block.line + 1} prints\n{result.printed}"


def test_the_code_draws_every_stored_figure_and_no_other(guide):
    made = sorted(path.name for path in guide[1].iterdir())
    assert made == sorted(path.name for path in (GUIDE / "figures").iterdir())


@pytest.mark.parametrize("figure", sorted((GUIDE / "figures").iterdir()), ids=lambda path: path.name)
def test_a_redrawn_figure_is_the_same(guide, figure):
    made = guide[1] / figure.name
    assert structure(made) == structure(figure)
    if not is_trained(figure):
        assert for_pages(drawing(made)) == drawing(figure)


def structure(figure):
    """Return the kind and words of a map, or the labels of a chart."""
    svg = figure.read_text(encoding="utf-8")
    if "<metadata" in svg:
        attention = Attention.load(figure)
        return attention.view.kind, attention.source, attention.target
    texts = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    return [text for text in texts if not re.fullmatch(r"[\d.]*", text)]


def drawing(figure):
    """Return a figure without its metadata, whose last digits may differ."""
    return re.sub(r"<metadata.*?</metadata>", "", figure.read_text(encoding="utf-8"), flags=re.DOTALL)


def is_trained(figure):
    """Whether a figure shows a trained model, whose last bits differ between machines."""
    [chapter] = [each for each in ENGLISH if each.name[:2] == figure.name[:2]]
    return "runs/" in chapter.read_text(encoding="utf-8")


# --- structure --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", [*ENGLISH, *KOREAN], ids=name)
def test_a_chapter_has_all_its_parts(chapter):
    text = chapter.read_text(encoding="utf-8")
    language = "ko" if chapter in KOREAN else "en"
    assert re.findall(r"^## (.*)$", FENCED.sub("", text), re.MULTILINE) == HEADINGS[language]
    assert text.startswith(f"# {int(chapter.name[:2])}. ")
    assert text.count("<details>") == text.count("</details>") >= 1
    assert IMAGE.search(text)
    assert "softgaze" in "".join(block.text for block in blocks(text) if block.kind == "python")


@pytest.mark.parametrize("page", sorted(GUIDE.rglob("*.md")), ids=name)
def test_figures_have_descriptions(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    assert all(alternative for alternative, _ in IMAGE.findall(text))


def test_every_figure_is_shown():
    shown = {Path(target).name for page in ENGLISH for _, target in IMAGE.findall(page.read_text(encoding="utf-8"))}
    assert {path.name for path in (GUIDE / "figures").iterdir()} <= shown


# --- the runner -------------------------------------------------------------------------------------------------

EXAMPLE = """
```text
y = x
```

```python
x = 1
print(x)
```

```output
1
```

```yaml
# some.yaml
key: value
```

```python
from pathlib import Path

print(x + 1, Path("some.yaml").read_text()[-6:])
print("≈ 10")
```

```output
2 value

≈ 9
```
"""


def test_blocks_of_a_chapter_share_names_and_files(tmp_path):
    chapter = tmp_path / "01-example.md"
    chapter.write_text(EXAMPLE)
    ran = [*run([chapter], tmp_path)]
    assert [each.block.kind for each in ran] == ["python", "yaml", "python"]
    assert all(each.is_as_shown for each in ran)
    assert chapter.read_text().split("\n")[ran[0].block.line] == "x = 1"


def test_a_changed_output_is_detected(tmp_path):
    chapter = tmp_path / "01-example.md"
    chapter.write_text(EXAMPLE.replace("x = 1", "x = 2"))
    assert [each.is_as_shown for each in run([chapter], tmp_path)] == [False, True, False]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\n", "a", True),
        ("a", "b", False),
        ("1.00", "1.01", False),
        ("≈ 1.00 s", "≈ 1.2 s", True),
        ("≈ 1.00 s", "≈ 2.0 s", False),
        ("≈ 1.00 s", "1.00 s", False),
        ("≈ 4 %", "≈ 14 %", True),
        ("≈ 60 %", "≈ 90 %", False),
        ("≈ 60 %", "≈ 60", False),
    ],
)
def test_only_measured_numbers_may_differ(shown, printed, same):
    assert agree(shown, printed) is same


def test_only_softgaze_commands_are_run():
    assert [*commands("softgaze info \\\n  runs/a  # what is it\n\nsoftgaze why")] == [["info", "runs/a"], ["why"]]
    with pytest.raises(ValueError, match="expected a softgaze command"):
        [*commands("rm -r runs")]
