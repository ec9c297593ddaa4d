"""Hostile names of robots, joints, files and columns, and the programs that each has broken."""

from __future__ import annotations

from steelyard.errors import unfit_for_a_name

NAMES = {
    # pages
    "a script": "</script><img src=x onerror=alert(1)>",
    "an attribute": '" onmouseover="alert(1)',
    "HTML": "<b>bold</b> &lt;i&gt; <a href='javascript:alert(1)'>x</a>",
    "a request": "<img src=http://127.0.0.1:9/x>",
    "a template": "%{y} {{x}} {name} %s %(x)s",
    "xacro": "${x}",
    "a comment": "a---b-->c]]>",
    # tables and shells
    "SQL": '"; DROP TABLE joints; --',
    "a formula": "=cmd|' /C calc'!A0",
    "another formula": "+1+cmd|' /C calc'!A0",
    "commas": "a,b;c'd\"e",
    "a shell": "`touch owned` ; rm -rf ~ | $HOME && x",
    "another shell": "$(touch owned)",
    # terminals
    "a colour": "\x1b[31mred\x1b[0m",
    "a title": "\x1b]0;owned\x07",
    "eight bits": "\x9b31mred",
    "markup": "[red]x[/red] [/] [link=http://x]y :warning:",
    "another direction": "photo\u202egpj.exe",
    "hidden": "a\u200bb\u00adc\ufeff",
    # C
    "the end of a comment": "*/ int owned; /*",
    "a comment in a comment": "/* a // b",
    "a trigraph": "what??/",
    "a backslash": "back\\",
    "a continued line": "a\\\nb",
    "a keyword": "while",
    # lines and characters
    "NUL": "a\x00b",
    "a newline": "a\nb",
    "a return": "a\r\nb",
    "a tab": "a\tb",
    "rubbed out": "a\x7fb",
    "another end of line": "a\u2028b\u0085c",
    "half a character": "a\udc80b",
    "beyond sixteen bits": "🤖\U000e0041",
    "a confusable": "jоint1",
    "very long": "n" * 5000,
    "long": "n" * 900,
    # YAML, TOML, JSON
    "no": "no",
    "a number": "1e5",
    "a dash": ": - ",
    "a tag": "!!python/object/apply:os.system ['id']",
    "an anchor": "&a *a",
    "a mapping": "{a: [b, c]} # d",
    "quotes": "'''\"\"\"",
    "escapes": "\\u0041\\x1b\\n",
    # paths
    "a path": "../../etc/passwd",
    "a device": "CON",
    "a dot": ".",
}
FIT = {label: name for label, name in NAMES.items() if not unfit_for_a_name(name)}
# A robot of three joints takes seven of them.
GROUPS = [(*list(FIT.values()), *list(FIT.values()))[k : k + 7] for k in range(0, len(FIT), 7)]
