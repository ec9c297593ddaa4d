"""plotly.js is trimmed to the parts that figures need; a script with an unexpected layout is kept whole."""

from __future__ import annotations

import gzip
import shutil
import subprocess

import pytest

from steelyard.report.plotly_js import (
    SCRIPTS,
    UnknownShapeError,
    _statements,
    installed_script,
    trim,
    trim_and_compress,
)

HEAD = """/* licence */
var Plotly=(()=>{var D=Object.defineProperty;var M=(e,t)=>()=>(e&&(t=e(e=0)),t);\
var W=(e,t)=>()=>(t||e((t={exports:{}}).exports,t),t.exports),X=(e,t)=>{for(var r in t)D(e,r,{get:t[r]})};"""
# Brackets and names without meaning: in strings, templates, regular expressions and comments.
MODULES = r"""
var a=W((e,t)=>{t.exports={moduleType:"trace",name:"bar",s:"big(){",r:/[/"}]\/big/g,q:6/2/1}});
var A=W((e,t)=>{t.exports=a()});
var b=W((e,t)=>{t.exports={moduleType:"trace",name:"globe",uses:big()}});
var big=W((e,t)=>{t.exports=`big ${[1].map(x=>`${x}}`)} ${huge}`});
var core={};X(core,{one:()=>one});function one(){return e.big/2}
var t,init=M(()=>{t=big()});
var all=W((e,r)=>{var c=core;c.register([A(),b()]);r.exports=c});return all();"""
SCRIPT = HEAD + MODULES + "})();/* more licences */window.Plotly=Plotly;"


def test_statements_leave_no_gaps():
    begin = SCRIPT.index("var D")
    found = list(_statements(SCRIPT, begin))
    assert "".join(s.text for s in found) == SCRIPT[begin : SCRIPT.index("})();/* more")]
    assert [s.declares for s in found][-4:] == [("one",), ("t", "init"), ("all",), ()]
    assert "big" not in found[3].mentions  # neither the string nor the regular expression mentions it


def test_unused_statements_are_removed():
    small = trim(SCRIPT, ["bar"])
    assert "globe" not in small
    assert "huge" not in small
    assert "init" not in small  # `t` is a local name elsewhere; the module is never called
    assert small.startswith(HEAD)
    assert small.endswith("/* more licences */window.Plotly=Plotly;")
    assert "c.register([A()])" in small
    assert "function one()" in small
    whole = trim(SCRIPT, ["bar", "globe"])
    assert "huge" in whole


@pytest.mark.parametrize(
    "script",
    ["", "var Plotly=1;", SCRIPT.replace("exports:{}", ""), SCRIPT.replace("register", "enrol"), SCRIPT[:-100],
     SCRIPT.replace('"bar"', '"bars"'), SCRIPT.replace("6/2/1}})", "6/2/1})")],
)  # fmt: skip
def test_a_script_of_unknown_layout_is_kept_whole(script, capsys):
    with pytest.raises(UnknownShapeError):
        trim(script, ["bar"])
    assert gzip.decompress(trim_and_compress(script, ["bar"])).decode() == script
    assert "cannot be trimmed" in capsys.readouterr().err


def test_the_installed_script_becomes_small(tmp_path):
    try:
        script = installed_script()
    except FileNotFoundError:
        pytest.skip("Plotly is not installed")
    sizes = []
    for kinds in SCRIPTS.values():
        small = trim(script, kinds)
        assert all(f'name:"{kind}"' in small for kind in (*kinds, "scatter"))
        assert not any(f'name:"{kind}"' in small for kind in ("sankey", "scattermap", "surface"))
        sizes.append(len(gzip.compress(small.encode(), 9)))
        if shutil.which("node"):
            (tmp_path / "small.js").write_text(small, "utf-8")
            subprocess.run(["node", "--check", str(tmp_path / "small.js")], check=True)
    assert sizes[0] < 450_000
    assert sizes[1] < 700_000
