"""`model_to_fmu`: exports a model with friction as a functional mock-up unit for Simulink and Modelica.

The unit (FMI 2.0, co-simulation) wraps the C code of `model_to_c`: inputs are positions, velocities and accelerations,
outputs are torques without delay. It stores the state of friction with hysteresis and updates it in each step. Reasons:
docs/decisions/012-fmu.md.
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

# Units of position, velocity, acceleration and torque with exponents of kg, m, s and rad, by kind of joint.
_UNITS = {
    "revolute": (("rad", 0, 0, 0, 1), ("rad/s", 0, 0, -1, 1), ("rad/s2", 0, 0, -2, 1), ("N.m", 1, 2, -2, 0)),
    "prismatic": (("m", 0, 1, 0, 0), ("m/s", 0, 1, -1, 0), ("m/s2", 0, 1, -2, 0), ("N", 1, 1, -2, 0)),
}
_SIGNALS = ("q", "dq", "ddq", "tau")
_PLATFORMS = {"linux": ("linux64", ".so"), "darwin": ("darwin64", ".dylib")}
_SECONDS = 120.0  # time limit of the compiler
_DAY = (1980, 1, 1, 0, 0, 0)  # fixed date of the files, so that the same model gives the same bytes

# Functions of FMI 2.0 for co-simulation, with the names of the standard (fmi-standard.org, 2.0.4, section 4).
_WRAPPER = """\
/* FMI 2.0 functions for the model in @NAME@.c. Inputs: q, dq, ddq of every joint; outputs: tau. */
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
# State and computation of a unit without and with friction hysteresis. Only a step stores the hysteresis; reading
# torques does not, so that a step can be repeated.
_PLAIN = """\
typedef struct { double values[4 * N]; int late; } Model;

static void torques(Model *m)
{
    if (m->late)
        @NAME@_inverse_dynamics(m->values, m->values + N, m->values + 2 * N, m->values + 3 * N);
    m->late = 0;
}
"""
_WITH_HYSTERESIS = """\
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
# Required functions without support here: variables of other types, saved states, derivatives.
_ABSENT = {
    **{
        f"{verb}{kind}": f"Unit c, const Reference r[], size_t n, {'' if verb == 'Get' else 'const '}{argument}"
        for verb in ("Get", "Set")
        for kind, argument in (("Integer", "int v[]"), ("Boolean", "int v[]"), ("String", "char *v[]"))
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
    """Write a model as an FMI 2.0 unit (co-simulation); return one sentence for each missing part.

    Inputs are `q_JOINT`, `dq_JOINT` and `ddq_JOINT` [rad or m, s], outputs `tau_JOINT` [N m or N]: the torque for the
    motion, including friction and rotors. With friction hysteresis the steps must be as short as those of the log,
    because each step updates the hysteresis to its inputs. The unit contains the C code and, if there is a compiler,
    the compiled library.

    Args:
        model: Model to write.
        path: Path of the unit (.fmu).
        name: Name of the C code in the unit; default: that of the file.
    """
    hysteresis = any(isinstance(a, Stop) for a, _ in model.terms.history)
    target = Path(path)
    prefix = c_name(name or target.stem)
    with TemporaryDirectory() as folder:
        source, header = model_to_c(model, Path(folder) / f"{prefix}.c", prefix)
        guid = f"{{{hashlib.sha256(source.read_bytes() + header.read_bytes()).hexdigest()[:32]}}}"
        wrapper = Path(folder) / f"{prefix}_fmi.c"
        wrapper.write_text(_wrapper(prefix, guid, hysteresis), "utf-8")
        files = {f"sources/{x.name}": x.read_bytes() for x in (wrapper, source, header)}
        library = _compile(Path(folder), prefix)
        if library is not None:
            files[library[0]] = library[1]
    files["modelDescription.xml"] = _description(model, prefix, guid).encode()
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(zipfile.ZipInfo(file, _DAY), content, zipfile.ZIP_DEFLATED)
    write_whole(target, packed.getvalue())
    return () if library is not None else ("No C compiler was found: the FMU contains only sources.",)


def _wrapper(name: str, guid: str, hysteresis: bool) -> str:
    others = []
    for table, body in ((_ABSENT, "return n ? ERROR : OK;"), (_REFUSED, "return ERROR;")):
        for function, arguments in table.items():
            names = [part.split()[-1].strip("*").removesuffix("[]") for part in arguments.split(", ")]
            unused = "".join(f"(void){x}; " for x in names if not (table is _ABSENT and x == "n"))
            others.append(f"API int fmi2{function}({arguments}) {{ {unused}{body} }}")
    text = _WRAPPER.replace("@MEMORY@", _WITH_HYSTERESIS if hysteresis else _PLAIN)
    text = text.replace("@STEP@", _KEEP if hysteresis else "")
    text = text.replace("@NAME@", name).replace("@SIZE@", name.upper()).replace("@GUID@", guid)
    return text.replace("@OTHERS@", "\n".join(others))


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _compile(folder: Path, name: str) -> tuple[str, bytes] | None:
    """Compile the sources in a folder; return the library's path in a unit and its bytes, or None without compiler."""
    compiler = _compiler()
    if compiler is None or sys.platform not in _PLATFORMS:
        return None
    platform, suffix = _PLATFORMS[sys.platform]
    library = folder / f"{name}{suffix}"
    sources = [str(folder / f"{name}.c"), str(folder / f"{name}_fmi.c")]
    options = ["-std=c99", "-O2", "-shared", "-fPIC", "-fvisibility=hidden"]
    command = [compiler, *options, *sources, "-lm", "-o", str(library)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if run.returncode:
        raise ExportError(f"The compiler {compiler} refused the FMU's sources: {run.stderr.strip().splitlines()[-1]}")
    return f"binaries/{platform}/{name}{suffix}", library.read_bytes()


def _description(model: Model, name: str, guid: str) -> str:
    robot = model.robot
    n = robot.dof
    used = {unit[0]: unit for joint in robot.joints for unit in _UNITS[joint.kind]}
    about = {
        "fmiVersion": "2.0", "modelName": robot.name, "guid": guid, "variableNamingConvention": "flat",
        "generationTool": f"Steelyard {version('steelyard')}",
        "description": "Torques for a motion: rigid bodies, rotors, friction and all other terms.",
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
        "FMI 2.0 with friction, for Simulink and Modelica; compiled if there is a C compiler",
        lambda model, name, _: {f"{name}.fmu": lambda p: model_to_fmu(model, p, name)},
        lacking=lambda: "" if _compiler() else "a C compiler (gcc or clang); without one a unit contains only sources",
    )
)
