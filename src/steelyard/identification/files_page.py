"""Report section on the robot files: their errors, and the terms that they cannot store."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.identification.file_scores import FileScore
from steelyard.identification.identification import Identification
from steelyard.identification.score_page import error_level
from steelyard.report.elements import Heat, Html, TableCell, join, paragraph, table_html, tabs
from steelyard.report.html import Section


def files_section(result: Identification) -> Section | None:
    """Build the section on the robot files, one table each; None if `result` has no scored files."""
    if not result.files:
        return None
    logs = "the validation logs" if result.files[0].unseen else "the fitted logs"
    note = (
        "The sidecar, C code and FMU contain the full model. URDF and MJCF cannot store all terms, so a separate "
        "model was fitted for each of them to the same rows. Each file was written, read back by the named program, "
        f"and scored on {logs}. Errors are in per cent of the torque's standard deviation. The cost of a file is its "
        "error less that of the full model."
    )
    return Section("The files", join(paragraph(note), tabs(*((file.file, file_table(file)) for file in result.files))))


def file_table(file: FileScore) -> Html:
    """Build the table of a `file`, joint by joint: errors, omitted terms and stored numbers."""
    names = list(file.joints[0].numbers)
    rows: list[Sequence[TableCell]] = [
        (
            j.joint,
            Heat(j.nrmse_percent, error_level(j.nrmse_percent)),
            Heat(j.model_nrmse_percent, error_level(j.model_nrmse_percent)),
            j.cost_percent,
            ", ".join(j.left_out) or "nothing",
            *(j.numbers[name] for name in names),
        )
        for j in file.joints
    ]
    heads = ["joint", "file %", "full model %", "cost %", "omitted", *names]
    return join(paragraph(file.sentence), table_html(heads, rows, f"{file.file}, read by {file.program}"))
