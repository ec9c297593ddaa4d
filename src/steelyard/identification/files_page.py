"""The section of a report on the robot files: their errors beside the full model's, and what they leave out."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.identification.file_scores import FileScore
from steelyard.identification.identification import Identification
from steelyard.identification.score_page import error_level
from steelyard.report.elements import Heat, Html, TableCell, join, paragraph, table_html, tabs
from steelyard.report.html import Section


def files_section(found: Identification) -> Section | None:
    """The files of what was `found`, a table each; None where none were scored."""
    if not found.files:
        return None
    judged = "logs that were not used for the fit" if found.files[0].unseen else "the logs that were fitted to"
    said = (
        "The sidecar, C code and FMU hold the full model. URDF and MJCF hold less, so that for each of them the best "
        "model that it can hold was fitted to the same rows. The files were written, read back by the program that is "
        f"named, and scored on {judged}, beside the full model on the same samples. Errors are in per cent of the "
        "torque's standard deviation; the cost of a file is the difference."
    )
    return Section("The files", join(paragraph(said), tabs(*((file.file, file_table(file)) for file in found.files))))


def file_table(file: FileScore) -> Html:
    """The joints of a `file`: errors, what is left out, and the numbers that it states."""
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
    heads = ["joint", "file %", "full model %", "cost %", "left out", *names]
    return join(paragraph(file.sentence), table_html(heads, rows, f"{file.file}, read by {file.program}"))
