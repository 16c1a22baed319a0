# Sphinx: the site from the Markdown of docs/, without a directive in it. `./spill site` runs it.
import pathlib
import re

project = "spillway"
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "230px", "show_powered_by": False}
html_static_path = ["site.css"]
html_css_files = ["site.css"]
highlight_language = "none"  # else what the program prints is coloured as Python
smartquotes = False  # -- stays --
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
exclude_patterns = ["schemas", "jobs", "site"]


def add_contents(app, docname, source):
    """Drops the marks of the tests and links that leave docs/ (their words stay), and lists a folder's pages on its index."""
    docs = pathlib.Path(app.srcdir).resolve()
    folder = (docs / docname).parent
    text = re.sub(r"<!--.*?-->", "", source[0], flags=re.DOTALL)

    def outside(link):
        target = (folder / link[2]).resolve()
        inside = target.suffix in (".md", ".png", ".svg") and target.is_relative_to(docs)
        return link[0] if inside or not target.exists() else link[1]

    text = re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s:#]+)(?:#[^)\s]*)?\)", outside, text)
    if docname == root_doc or docname.endswith("/index"):
        entries = sorted(page.stem for page in folder.glob("*.md") if page.stem != "index")
        for below in ("tutorial", "how-to", "explanation", "validation", "reference", "internals", "decisions", "contributing"):
            first = folder / below / "index.md"
            pages = [first] if first.exists() else sorted((folder / below).glob("*.md"))
            entries += [f"{below}/{page.stem}" for page in pages]
        text += "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"
    source[0] = text


def setup(app):
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True}
