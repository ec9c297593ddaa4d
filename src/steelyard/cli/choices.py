"""What options can be, listed in their help: asked of those who know it, and only when help is shown."""

from __future__ import annotations

from importlib import import_module
from string import Formatter

# What a help text may name in braces: the module, and in it the names, or a function that says them.
LISTS = {
    "estimators": ("estimation.registry", "estimator_help"),
    "schemes": ("regression.schemes", "SCHEMES"),
    "default_terms": ("parameters.terms", "DEFAULT_TERMS"),
    "families": ("excitation.excite", "FAMILIES"),
    "criteria": ("excitation.criteria", "CRITERIA"),
    "optimisers": ("excitation.excite", "OPTIMISERS"),
    "papers": ("papers", "PAPERS"),
    "groups": ("compare.methods", "GROUPS"),
    "noises": ("compare.protocol", "NOISES"),
    "controllers": ("compare.protocol", "CONTROLLERS"),
}


def filled(text: str) -> str:
    """The help `text` with "{schemes:or}" spelled out as "dynamic, … or filtered-power", or "{papers:,}" as a list."""
    out = []
    for plain, name, joint, _ in Formatter().parse(text):
        out.append(plain)
        if name:
            module, listed = LISTS[name]
            found = getattr(import_module(f"steelyard.{module}"), listed)
            out.append(found() if callable(found) else _joined(list(found), joint or ""))
    return "".join(out)


def _joined(names: list[str], joint: str) -> str:
    if joint == "or" and len(names) > 1:
        return f"{', '.join(names[:-1])} or {names[-1]}"
    return (joint or ", ").join(names)
