"""Parameter files, checked against a notebook's parameters cell before any kernel starts.

papermill only warns about a name that the notebook does not have, and takes a value of any type.
"""

import ast
import difflib
import json
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def read_parameters(size: str, notebook: str, root: Path = ROOT) -> dict:
    """Values of params/<size>/<notebook>.yaml, checked against notebooks/<notebook>.ipynb.

    Raises: ValueError: no such file; a name that the parameters cell does not have; a value of another type.
    """
    path = root / "params" / size / f"{notebook}.yaml"
    if not path.is_file():
        raise ValueError(
            f"{path.relative_to(root)} is missing: each size has one parameter file for each notebook."
        )
    defaults = notebook_defaults(root / "notebooks" / f"{notebook}.ipynb")
    parameters = yaml.safe_load(path.read_text(encoding="utf-8"))
    check_parameters(parameters, defaults, path.relative_to(root))
    return parameters


NETWORKS = {
    "n_classifier": 20_000,
    "n_flow": 25_000,
    "n_recourse": 20_000,
    "n_applicants": 120_269,
    "seed": 0,
    "n_seeds": 10,
    "models": "runs/paper/models",
    "n_epochs": {
        "loan_icarma_ranking": 450,
        "loan_icarma_score": 900,
        "loan_icarma_rco": 450,
        "loan_carma": 450,
        "gmsc_classifier": 30,
        "gmsc_flow": 30,
        "gmsc_icarma": 100,
        "gmsc_other_flows": 15,
    },
}


def read_network_parameters(size: str, root: Path = ROOT) -> dict:
    """Values of params/<size>/networks.yaml, for the stacks of networks that are trained outside of notebooks.

    Raises: ValueError: no such file; a name is missing or unknown; a value is of another type.
    """
    path = root / "params" / size / "networks.yaml"
    if not path.is_file():
        raise ValueError(
            f"{path.relative_to(root)} is missing: each size says how its networks are trained."
        )
    parameters = yaml.safe_load(path.read_text(encoding="utf-8"))
    _check_all(parameters, NETWORKS, f"{path.relative_to(root)}")
    _check_all(
        parameters["n_epochs"], NETWORKS["n_epochs"], f"{path.relative_to(root)}, n_epochs"
    )
    return parameters


def _check_all(parameters: dict, expected: dict, where: str) -> None:
    """`check_parameters`, and that none is missing."""
    check_parameters(parameters, expected, where, "a description of networks")
    missing = [name for name in expected if name not in parameters]
    if missing:
        raise ValueError(f"{where} says nothing about {', '.join(missing)}.")


def notebook_defaults(path: Path) -> dict:
    """Names and default values in the one cell tagged `parameters` of a notebook.

    Raises: ValueError: not exactly one such cell, or something in it that is not `name = literal`.
    """
    cells = [
        cell
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code" and "parameters" in cell["metadata"].get("tags", [])
    ]
    if len(cells) != 1:
        raise ValueError(
            f"{path.name} has {len(cells)} code cells tagged `parameters`, expected one: "
            "tag the cell that holds the defaults (in JupyterLab: property inspector, Cell Tags)."
        )
    try:
        return {
            _name(line): ast.literal_eval(line.value)
            for line in ast.parse("".join(cells[0]["source"])).body
        }
    except (SyntaxError, ValueError) as error:
        raise ValueError(
            f"{path.name}: the parameters cell may hold only lines `name = literal` ({error}). "
            "Derive other values in a later cell: papermill's values land after this one."
        ) from error


def check_parameters(
    parameters: dict, defaults: dict, path: Path | str, owner: str = "the notebook"
) -> None:
    """Nothing; complains about a parameter whose name or type does not fit its owner's defaults.

    Raises: ValueError: says the file, the name, what was expected and the likely cause.
    """
    if not isinstance(parameters, dict):
        raise ValueError(
            f"{path} should hold lines `name: value`, it holds {parameters!r}."
        )
    for name, value in parameters.items():
        if name not in defaults:
            close = difflib.get_close_matches(str(name), defaults, n=3)
            hint = (
                f"did you mean {' or '.join(close)}?"
                if close
                else f"it has {', '.join(defaults)}."
            )
            raise ValueError(f"{path}: {owner} has no parameter {name!r}; {hint}")
        if not _fits(value, defaults[name]):
            raise ValueError(
                f"{path}: {name} is {value!r} ({type(value).__name__}), expected "
                f"{_expected(defaults[name])} like {owner}'s {defaults[name]!r}.{_likely_cause(value)}"
            )


def _name(line: ast.stmt) -> str:
    """The name that an assignment `name = value` sets."""
    if not (
        isinstance(line, ast.Assign)
        and len(line.targets) == 1
        and isinstance(line.targets[0], ast.Name)
    ):
        raise ValueError(f"found `{ast.unparse(line)}`")
    return line.targets[0].id


def _fits(value, default) -> bool:
    """Whether a value may replace a default: the same type, or an int for a float; None takes anything."""
    if default is None:
        return True
    if isinstance(default, list):
        return isinstance(value, list) and all(
            not default or any(_fits(v, d) for d in default) for v in value
        )
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)


def _expected(default) -> str:
    """The type of a default, in words."""
    if isinstance(default, list) and default:
        return f"list of {' or '.join(sorted({type(item).__name__ for item in default}))}"
    return type(default).__name__


def _likely_cause(value) -> str:
    """The trap of YAML that turns what was meant into this value, as a sentence, or nothing."""
    if isinstance(value, list):
        return next((cause for cause in map(_likely_cause, value) if cause), "")
    if isinstance(value, bool):
        return " YAML reads no, off, yes and on as true or false: put quotes around a text."
    if isinstance(value, str):
        try:
            return f" YAML reads {value} as text: write {float(value)!r}, or 1.0e-3 for 1e-3; and no quotes around a number."
        except ValueError:
            return ""
    return ""
