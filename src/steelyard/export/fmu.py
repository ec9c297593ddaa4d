"""`model_to_fmu`: the identified model, friction included, as a functional mock-up unit for Simulink and Modelica.

The unit (FMI 2.0, co-simulation) is the C code of `model_to_c` with a thin coat: positions, velocities and
accelerations go in, torques come out at once. Where friction remembers, the unit keeps its stops, and a step takes them
along. Why this: docs/decisions/012-fmu.md.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from steelyard.dynamics.model import Model
from steelyard.errors import ExportError
from steelyard.export._xml_text import tag
from steelyard.export.c import model_to_c
from steelyard.export.formats import MODEL_FORMATS, ModelFormat, c_name
from steelyard.ground.files import write_whole
from steelyard.parameters.hysteresis import Stop

# Unit names with their exponents of kg, m, s and rad, by kind of joint: position, velocity, acceleration, torque.
_UNITS = {
    "revolute": (("rad", 0, 0, 0, 1), ("rad/s", 0, 0, -1, 1), ("rad/s2", 0, 0, -2, 1), ("N.m", 1, 2, -2, 0)),
    "prismatic": (("m", 0, 1, 0, 0), ("m/s", 0, 1, -1, 0), ("m/s2", 0, 1, -2, 0), ("N", 1, 1, -2, 0)),
}
_SIGNALS = ("q", "dq", "ddq", "tau")
_PLATFORMS = {"linux": ("linux64", ".so"), "darwin": ("darwin64", ".dylib")}
_SECONDS = 120.0  # what a compiler may take
_DAY = (1980, 1, 1, 0, 0, 0)  # of the files inside: the same model gives the same bytes, but for the compiler's

# The functions of FMI 2.0 for co-simulation, in the names of the standard (fmi-standard.org, 2.0.4, section 4).
_COAT = """\
/* The functions of FMI 2.0 around the model in @NAME@.c. Inputs: q, dq, ddq of every joint; outputs: tau. */
#include <stdlib.h>
#include <string.h>

#include "@NAME@.h"

#define N @SIZE@_JOINTS
#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

typedef void *Unit;
typedef unsigned int Reference;
enum { OK = 0, ERROR = 3 };
/* values: q, dq, ddq, then tau; late: an input has changed since tau was computed. */
@MEMORY@

API const char *fmi2GetTypesPlatform(void) { return "default"; }
API const char *fmi2GetVersion(void) { return "2.0"; }
API int fmi2SetDebugLogging(Unit c, int on, size_t n, const char *const categories[])
{
    (void)c; (void)on; (void)n; (void)categories;
    return OK;
}
API Unit fmi2Instantiate(const char *name, int kind, const char *guid, const char *place, const void *callbacks,
                         int visible, int logging)
{
    Model *m = kind == 1 && guid && strcmp(guid, "@GUID@") == 0 ? calloc(1, sizeof(Model)) : NULL;
    (void)name; (void)place; (void)callbacks; (void)visible; (void)logging;
    if (m)
        m->late = 1;
    return m;
}
API void fmi2FreeInstance(Unit c) { free(c); }
API int fmi2SetupExperiment(Unit c, int given, double tolerance, double start, int ends, double stop)
{
    (void)c; (void)given; (void)tolerance; (void)start; (void)ends; (void)stop;
    return OK;
}
API int fmi2EnterInitializationMode(Unit c) { (void)c; return OK; }
API int fmi2ExitInitializationMode(Unit c) { (void)c; return OK; }
API int fmi2Terminate(Unit c) { (void)c; return OK; }
API int fmi2Reset(Unit c)
{
    memset(c, 0, sizeof(Model));
    ((Model *)c)->late = 1;
    return OK;
}
API int fmi2GetReal(Unit c, const Reference r[], size_t n, double value[])
{
    Model *m = c;
    torques(m);
    for (size_t k = 0; k < n; ++k) {
        if (r[k] >= 4 * N)
            return ERROR;
        value[k] = m->values[r[k]];
    }
    return OK;
}
API int fmi2SetReal(Unit c, const Reference r[], size_t n, const double value[])
{
    Model *m = c;
    for (size_t k = 0; k < n; ++k) {
        if (r[k] >= 3 * N)
            return ERROR;
        m->values[r[k]] = value[k];
    }
    m->late = 1;
    return OK;
}
API int fmi2DoStep(Unit c, double now, double step, int final)
{
    (void)now; (void)step; (void)final;
    torques(c);@STEP@
    return OK;
}
API int fmi2CancelStep(Unit c) { (void)c; return ERROR; }
@OTHERS@
"""
# What a unit holds and how it computes: of a model without memory, and of one whose friction remembers. A step keeps
# the stops as they are at its inputs; torques that are asked for in between do not, so that a step may be tried again.
_PLAIN = """\
typedef struct { double values[4 * N]; int late; } Model;

static void torques(Model *m)
{
    if (m->late)
        @NAME@_inverse_dynamics(m->values, m->values + N, m->values + 2 * N, m->values + 3 * N);
    m->late = 0;
}
"""
_REMEMBERING = """\
typedef struct { double values[4 * N]; int late, begun; @NAME@_state before, now; } Model;

static void torques(Model *m)
{
    if (m->late) {
        m->now = m->before;
        if (!m->begun)
            @NAME@_init(&m->now, m->values);
        @NAME@_inverse_dynamics(&m->now, m->values, m->values + N, m->values + 2 * N, m->values + 3 * N);
    }
    m->late = 0;
}
"""
_KEEP = """
    ((Model *)c)->before = ((Model *)c)->now;
    ((Model *)c)->begun = 1;"""
# What the standard asks for and this unit does not have: variables of other types, saved states, derivatives.
_ABSENT = {
    **{
        f"{verb}{kind}": f"Unit c, const Reference r[], size_t n, {'' if verb == 'Get' else 'const '}{held}"
        for verb in ("Get", "Set")
        for kind, held in (("Integer", "int v[]"), ("Boolean", "int v[]"), ("String", "char *v[]"))
    },
    "SetRealInputDerivatives": "Unit c, const Reference r[], size_t n, const int o[], const double v[]",
    "GetRealOutputDerivatives": "Unit c, const Reference r[], size_t n, const int o[], double v[]",
}
_REFUSED = {
    "GetFMUstate": "Unit c, void **s", "SetFMUstate": "Unit c, void *s", "FreeFMUstate": "Unit c, void **s",
    "SerializedFMUstateSize": "Unit c, void *s, size_t *n", "SerializeFMUstate": "Unit c, void *s, char b[], size_t n",
    "DeSerializeFMUstate": "Unit c, const char b[], size_t n, void **s", "GetStatus": "Unit c, int k, int *v",
    "GetDirectionalDerivative":
        "Unit c, const Reference u[], size_t n, const Reference k[], size_t m, const double d[], double v[]",
    "GetRealStatus": "Unit c, int k, double *v", "GetIntegerStatus": "Unit c, int k, int *v",
    "GetBooleanStatus": "Unit c, int k, int *v", "GetStringStatus": "Unit c, int k, const char **v",
}  # fmt: skip


def model_to_fmu(model: Model, path: str | os.PathLike[str], name: str = "") -> tuple[str, ...]:
    """Write `model` as a unit of FMI 2.0 (co-simulation) to `path` (.fmu); returns what it leaves out, a sentence each.

    Inputs are `q_JOINT`, `dq_JOINT` and `ddq_JOINT` (rad, m, s), outputs `tau_JOINT` (N m, N): the torque that the
    motion needs, friction and rotors included. Where friction remembers, every step moves its stops on to the inputs of
    that step: give the motion in steps as short as those of the log. The C code is inside, and, where a compiler is,
    the library made of it; `name` is what it is called there (default: the file's).
    """
    remembers = any(isinstance(a, Stop) for a, _ in model.terms.history)
    target = Path(path)
    called = c_name(name or target.stem)
    with TemporaryDirectory() as place:
        source, header = model_to_c(model, Path(place) / f"{called}.c", called)
        guid = f"{{{hashlib.sha256(source.read_bytes() + header.read_bytes()).hexdigest()[:32]}}}"
        coat = Path(place) / f"{called}_fmi.c"
        coat.write_text(_coat(called, guid, remembers), "utf-8")
        files = {f"sources/{x.name}": x.read_bytes() for x in (coat, source, header)}
        library = _compiled(Path(place), called)
        if library is not None:
            files[library[0]] = library[1]
    files["modelDescription.xml"] = _description(model, called, guid).encode()
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file, _DAY), content, zipfile.ZIP_DEFLATED)
    write_whole(target, packed.getvalue())
    return () if library is not None else ("No C compiler was found: the FMU holds sources alone.",)


def _coat(name: str, guid: str, remembers: bool) -> str:
    others = []
    for table, body in ((_ABSENT, "return n ? ERROR : OK;"), (_REFUSED, "return ERROR;")):
        for function, arguments in table.items():
            held = [part.split()[-1].strip("*").removesuffix("[]") for part in arguments.split(", ")]
            unused = "".join(f"(void){x}; " for x in held if not (table is _ABSENT and x == "n"))
            others.append(f"API int fmi2{function}({arguments}) {{ {unused}{body} }}")
    text = _COAT.replace("@MEMORY@", _REMEMBERING if remembers else _PLAIN).replace(
        "@STEP@", _KEEP if remembers else ""
    )
    text = text.replace("@NAME@", name).replace("@SIZE@", name.upper()).replace("@GUID@", guid)
    return text.replace("@OTHERS@", "\n".join(others))


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _compiled(place: Path, name: str) -> tuple[str, bytes] | None:
    """The library of the sources in `place`, and where it belongs in a unit; None where there is no compiler."""
    compiler = _compiler()
    if compiler is None or sys.platform not in _PLATFORMS:
        return None
    platform, end = _PLATFORMS[sys.platform]
    library = place / f"{name}{end}"
    sources = [str(place / f"{name}.c"), str(place / f"{name}_fmi.c")]
    options = ["-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
    command = [compiler, *options, *sources, "-lm", "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise ExportError(f"The compiler {compiler} refused the FMU's sources: {done.stderr.strip().splitlines()[-1]}")
    return f"binaries/{platform}/{name}{end}", library.read_bytes()


def _description(model: Model, name: str, guid: str) -> str:
    robot = model.robot
    n = robot.dof
    used = {unit[0]: unit for joint in robot.joints for unit in _UNITS[joint.kind]}
    about = {
        "fmiVersion": "2.0", "modelName": robot.name, "guid": guid, "variableNamingConvention": "flat",
        "generationTool": f"Steelyard {version('steelyard')}",
        "description": "Torques that a motion needs: rigid bodies, rotors, friction and all other terms.",
    }  # fmt: skip
    can = {"modelIdentifier": name, "canHandleVariableCommunicationStepSize": "true",
           "canNotUseMemoryManagementFunctions": "true"}  # fmt: skip
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', tag("fmiModelDescription", about, closed=False)]
    lines += [f"  {tag('CoSimulation', can, closed=False)}", "    <SourceFiles>"]
    lines += [f"      {tag('File', {'name': f})}" for f in (f"{name}_fmi.c", f"{name}.c")]
    lines += ["    </SourceFiles>", "  </CoSimulation>", "  <UnitDefinitions>"]
    for unit, *powers in used.values():
        base = {x: str(p) for x, p in zip(("kg", "m", "s", "rad"), powers, strict=True) if p}
        lines.append(f"    {tag('Unit', {'name': unit}, closed=False)}{tag('BaseUnit', base)}</Unit>")
    lines += ["  </UnitDefinitions>", "  <ModelVariables>"]
    for s, signal in enumerate(_SIGNALS):
        for k, joint in enumerate(robot.joints):
            output = signal == "tau"
            variable = {"name": f"{signal}_{joint.name}", "valueReference": str(s * n + k), "variability": "continuous",
                        "causality": "output" if output else "input"}  # fmt: skip
            real = {"unit": _UNITS[joint.kind][s][0]} | ({} if output else {"start": "0.0"})
            opened = tag("ScalarVariable", variable | ({"initial": "calculated"} if output else {}), closed=False)
            lines.append(f"    {opened}{tag('Real', real)}</ScalarVariable>")
    unknowns = [f"      {tag('Unknown', {'index': str(3 * n + k + 1)})}" for k in range(n)]
    lines += ["  </ModelVariables>", "  <ModelStructure>", "    <Outputs>", *unknowns, "    </Outputs>"]
    lines += ["    <InitialUnknowns>", *unknowns, "    </InitialUnknowns>", "  </ModelStructure>"]
    return "\n".join([*lines, "</fmiModelDescription>", ""])


MODEL_FORMATS.register("fmu")(
    ModelFormat(
        "FMI 2.0 with friction, for Simulink and Modelica; compiled where a C compiler is",
        lambda model, name, _: {f"{name}.fmu": lambda p: model_to_fmu(model, p, name)},
        lacking=lambda: "" if _compiler() else "a C compiler (gcc or clang); without one a unit holds sources alone",
    )
)
