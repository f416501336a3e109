"""Parameter files, checked against a notebook's parameters cell before any kernel starts.

A size is a folder of params. Its run.yaml says what notebooks and
networks share; each notebook has a file of its own for the rest, and
networks.yaml is for what is fitted outside of notebooks. A value
stands in one file only.

papermill only warns about a name that the notebook does not have, and
takes a value of any type. So both are checked here, and that seeds and
sizes are not below zero. A batch writes to runs/<size> alone:
elsewhere it would not find again what it wrote, or change what another
batch wrote, or what is committed. Who wants a notebook's results
elsewhere runs it by hand and names a folder (papermill's -p outputs).
"""

import ast
import difflib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lib import io

ROOT = Path(__file__).resolve().parents[1]
MODEL_SIZE = "paper"  # the size whose run.yaml and networks.yaml say what has to be there
FOLDERS = ("models", "outputs", "figures")  # that a batch writes to
REMADE = ("book", "slides")  # folders of runs that a command empties


def read_parameters(size: str, notebook: str, root: Path = ROOT) -> dict[str, Any]:
    """Return what papermill hands to a notebook: shared values, then the notebook's own.

    Arguments:
        size: A folder of params.
        notebook: Its name, without the ending.
        root: The repository.
    Raises: ValueError: a file is missing; a name that the notebook
        does not have; a value of another type; a value that run.yaml
        has already.

    Example:
        >>> values = read_parameters("smoke", "01_data_and_scm")
        >>> values["n_flow"], values["committed"], values["outputs"]
        (800, '', 'runs/smoke')
        >>> "models" in values  # notebook 01 has no such parameter
        False
    """
    defaults = notebook_defaults(root / "notebooks" / f"{notebook}.ipynb")
    shared = read_shared(size, root)
    taken = {name: value for name, value in shared.items() if name in defaults}
    check_parameters(taken, defaults, f"params/{size}/run.yaml", notebook)
    own = _read(root, size, notebook)
    check_parameters(own, defaults, f"params/{size}/{notebook}.yaml")
    _check_folders(own, size, f"params/{size}/{notebook}.yaml")
    _check_said_once(own, shared, f"params/{size}/{notebook}.yaml")
    return taken | own


def read_network_parameters(size: str, root: Path = ROOT) -> dict[str, Any]:
    """Return how networks are trained outside of notebooks, beside all shared values.

    Raises: ValueError: a file is missing; a name is missing or
        unknown; a value of another type than in params/paper; a value
        that run.yaml has already.

    Example:
        >>> values = read_network_parameters("smoke")
        >>> values["n_seeds"], values["n_epochs"]["loan_carma"], values["seed"]
        (1, 2, 0)
    """
    shared, own = read_shared(size, root), _read(root, size, "networks")
    model = _read(root, MODEL_SIZE, "networks")
    where = f"params/{size}/networks.yaml"
    _check_like(own, model, where)
    for name, values in model.items():
        if isinstance(values, dict):
            _check_like(own[name], values, f"{where}, {name}")
            for key, value in own[name].items():  # None: as a search found
                if value is not None and type(value) is not int:
                    raise ValueError(f"{where}: {key} is {value!r}, expected int or null.")
                _check_range(name, value, 1, f"{where}, {key}")
    _check_said_once(own, shared, where)
    return shared | own


def read_shared(size: str, root: Path = ROOT) -> dict[str, Any]:
    """Return the values of run.yaml, which notebooks and networks of a size share.

    Raises: ValueError: no such file; a name that no notebook has; a
        name is missing, or a value has another type than in
        params/paper; a folder is not in runs/<size>.

    Example:
        >>> read_shared("quick")["n_recourse"]
        4000
    """
    shared, where = _read(root, size, "run"), f"params/{size}/run.yaml"
    _check_like(shared, _read(root, MODEL_SIZE, "run"), where)
    notebooks = sorted((root / "notebooks").glob("*.ipynb"))
    in_some_notebook = {n for path in notebooks for n in notebook_defaults(path)}
    for name in shared:
        if name not in in_some_notebook:
            hint = _near(name, sorted(in_some_notebook))
            raise ValueError(f"{where}: no notebook has a parameter {name!r}; {hint}")
    _check_folders(shared, size, where)
    return shared


def read_own(path: Path, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that somebody wrote for a notebook; it may lie anywhere.

    Arguments:
        path: A YAML file.
        defaults: Of the notebook, see `notebook_defaults`.
    Raises: ValueError: there is no such file, or it has a name that
        the notebook does not have, or a value of another type.

    Example:
        >>> defaults = notebook_defaults(ROOT / "notebooks" / "12_your_own_problem.ipynb")
        >>> read_own(ROOT / "examples" / "own_table.yaml", defaults)["label"]
        'income'
    """
    given = io.load_yaml(path)
    check_parameters(given, defaults, str(path))
    return given


def notebook_defaults(path: Path) -> dict[str, Any]:
    """Return names and default values of the cell tagged `parameters` of a notebook.

    Raises: ValueError: not exactly one such cell, or something in it
        that is not `name = literal`.

    Example:
        >>> path = ROOT / "notebooks" / "00_start_here.ipynb"
        >>> notebook_defaults(path)["n_values"]
        25
    """
    with io.in_file(path):
        cells = _tagged(json.loads(path.read_text(encoding="utf-8")))
    if len(cells) != 1:
        raise ValueError(
            f"{path.name} has {len(cells)} code cells tagged `parameters`, expected one: "
            "tag the cell that holds the defaults (in JupyterLab: property inspector, Cell "
            "Tags)."
        )
    try:
        lines = [_assigned(line) for line in ast.parse(cells[0]).body]
        if twice := [name for name, _ in lines if [n for n, _ in lines].count(name) > 1]:
            raise ValueError(f"{twice[0]} stands there twice")
        return dict(lines)
    except (SyntaxError, ValueError, TypeError) as error:
        raise ValueError(
            f"{path.name}: the parameters cell may hold only lines `name = literal` "
            f"({error}). Derive other values in a later cell: papermill's values land "
            "after this one."
        ) from error


def check_parameters(
    parameters: Mapping[str, Any],
    defaults: Mapping[str, Any],
    where: str,
    owner: str = "the notebook",
) -> None:
    """Raise ValueError unless each parameter has a name and a type of its owner's defaults.

    Numbers must be finite, and not below zero where the owner's are
    not; sizes (n_...) must be above zero where the owner's are.

    Arguments:
        parameters: Names and values, as a file says them.
        defaults: Names and values of the owner.
        where: The file, for the message.
        owner: Whose defaults they are, for the message.

    Example:
        >>> check_parameters({"n_seeds": 3}, {"n_seeds": 10}, "a.yaml")
        >>> check_parameters({"n_sedes": 3}, {"n_seeds": 10}, "a.yaml")
        Traceback (most recent call last):
        ValueError: a.yaml: the notebook has no parameter 'n_sedes'; did you mean n_seeds?
    """
    if not isinstance(parameters, Mapping):
        raise ValueError(
            f"{where} should hold lines `name: value`, it holds {parameters!r}."
        )
    for name, value in parameters.items():
        if name not in defaults:
            hint = _near(name, list(defaults))
            raise ValueError(f"{where}: {owner} has no parameter {name!r}; {hint}")
        if not _fits(value, defaults[name]):
            raise ValueError(
                f"{where}: {name} is {value!r} ({type(value).__name__}), expected "
                f"{_expected(defaults[name])} like {owner}'s {defaults[name]!r}."
                f"{_likely_cause(value)}"
            )
        _check_range(name, value, defaults[name], f"{where}: {name}")


def _check_range(name: str, value: Any, default: Any, where: str) -> None:
    """Raise ValueError if a number is not finite, or below what name and default say."""
    numbers = [n for n in (value if isinstance(value, list) else [value]) if _is_number(n)]
    usual = [
        n for n in (default if isinstance(default, list) else [default]) if _is_number(n)
    ]
    least = 1 if name.startswith("n_") and min(usual, default=1) >= 1 else 0
    for number in numbers:
        if isinstance(number, float) and not math.isfinite(number):
            raise ValueError(f"{where} is {number!r}, expected a finite number.")
        if number < least and min(usual, default=0) >= 0:
            raise ValueError(f"{where} is {number!r}, expected {least} or more.")


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, which True is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_folders(values: Mapping[str, Any], size: str, where: str) -> None:
    """Raise ValueError unless the folders that a batch writes to are in runs/<size>."""
    own = os.path.join("runs", size)
    for name in FOLDERS:
        if not Path(os.path.normpath(values.get(name, own))).is_relative_to(own):
            raise ValueError(
                f"{where}: {name} is {values[name]!r}, expected {own} or a folder in it: a "
                "batch writes nowhere else."
            )


def check_own_folder(folder: str, what: str, root: Path = ROOT) -> None:
    """Raise ValueError unless a run of its own may write to a folder of the repository.

    Arguments:
        folder: Relative to the repository.
        what: The folder is, for the message.
        root: The repository.

    Example:
        >>> check_own_folder("runs/mine", "outputs")
        >>> check_own_folder("runs/paper/mine", "outputs")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: outputs is 'runs/paper/mine', and runs/paper is another command's: ...
    """
    parts = os.path.normpath(folder).split(os.sep)
    if parts[0] != "runs" or len(parts) < 2:
        raise ValueError(
            f"{what} is {folder!r}, expected a folder below runs, such as runs/mine: "
            "nothing else is written to."
        )
    if parts[1] in REMADE or (root / "params" / parts[1]).is_dir():
        raise ValueError(
            f"{what} is {folder!r}, and runs/{parts[1]} is another command's: name a "
            "folder of your own, such as runs/mine."
        )


def _tagged(notebook: Any) -> list[str]:
    """Return the source of each code cell of a notebook that is tagged `parameters`."""
    try:
        return [
            "".join(cell["source"])
            for cell in notebook["cells"]
            if cell["cell_type"] == "code"
            and "parameters" in cell["metadata"].get("tags", [])
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"This is no notebook ({error!r}).") from error


def _read(root: Path, size: str, name: str) -> Any:
    """Return what a parameter file of a size holds."""
    path = root / "params" / size / f"{name}.yaml"
    if not path.is_file():
        raise ValueError(
            f"{path.relative_to(root)} is missing: each size has run.yaml, networks.yaml "
            "and one file for each notebook."
        )
    return io.load_yaml(path)


def _check_like(
    parameters: Mapping[str, Any],
    model: Mapping[str, Any],
    where: str,
    owner: str = f"params/{MODEL_SIZE}",
) -> None:
    """Raise ValueError unless a file has all names of the owner's, with their types."""
    check_parameters(parameters, model, where, owner)
    missing = [name for name in model if name not in parameters]
    if missing:
        raise ValueError(f"{where} says nothing about {', '.join(missing)}.")


def _check_said_once(own: Mapping[str, Any], shared: Mapping[str, Any], where: str) -> None:
    """Raise ValueError if a file says what run.yaml says already."""
    twice = [name for name in own if name in shared]
    if twice:
        raise ValueError(
            f"{where}: run.yaml says {', '.join(twice)} for all notebooks of this size. "
            "Change it there, and take it out here."
        )


def _near(name: str, names: list[str]) -> str:
    """Return the names that may have been meant, or all there are, as a half-sentence."""
    close = difflib.get_close_matches(str(name), names, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known are {', '.join(names)}."


def _assigned(line: ast.stmt) -> tuple[str, Any]:
    """Return name and value of an assignment `name = literal`."""
    if (
        isinstance(line, ast.Assign)
        and len(line.targets) == 1
        and isinstance(line.targets[0], ast.Name)
    ):
        return line.targets[0].id, ast.literal_eval(line.value)
    raise ValueError(f"found `{ast.unparse(line)}`")


def _fits(value: Any, default: Any) -> bool:
    """Return whether a value may replace a default: the same type, or an int for a float.

    A default of None may be replaced by anything.
    """
    if default is None:
        return True
    if isinstance(default, list):
        return isinstance(value, list) and all(
            not default or any(_fits(v, d) for d in default) for v in value
        )
    if isinstance(default, float):
        return type(value) in (int, float)
    return type(value) is type(default)


def _expected(default: Any) -> str:
    """Return the type of a default, in words."""
    if isinstance(default, list) and default:
        return f"list of {' or '.join(sorted({type(item).__name__ for item in default}))}"
    return type(default).__name__


def _likely_cause(value: Any) -> str:
    """Return the trap of YAML that made this value of what was meant, or an empty text."""
    if isinstance(value, list):
        return next((cause for cause in map(_likely_cause, value) if cause), "")
    if isinstance(value, bool):
        return " YAML reads no, off, yes and on as true or false: put quotes around a text."
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return ""
        return (
            f" YAML reads {value} as text: write {number!r}, or 1.0e-3 for 1e-3; and no "
            "quotes around a number."
        )
    return ""
