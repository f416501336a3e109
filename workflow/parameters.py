"""The sizes of a batch, params/<size>.yaml, checked before any kernel starts.

A notebook's parameters cell holds its names and its values at the
paper's size. params/paper.yaml, quick.yaml and smoke.yaml hold what
differs from them: `all` for every notebook that has such a parameter,
`notebooks` for one of them, and `fits` for workflow/fit.py.

`python workflow/parameters.py SIZE NOTEBOOK` prints what papermill's
option -y takes.
"""

import ast
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from lib import checks, io

NOTEBOOKS = io.ROOT / "notebooks"
SECTIONS = ("all", "notebooks", "fits")


def given(size: str, notebook: str, params: Path = io.PARAMS) -> dict[str, Any]:
    """Return the parameters that a size gives to a notebook.

    Arguments:
        size: Name of a file of params, without its ending.
        notebook: Its name, without the ending.
        params: The folder.
    Raises: ValueError: the notebook has no such parameter, or it is
        of another type.

    Example:
        >>> values = given("smoke", "02_causal_flow")
        >>> values["n_epochs"], "n_recourse" in values, "n_seeds" in values
        (4, True, False)
    """
    sections, defaults = read(size, params), defaults_of(notebook)
    shared = {name: value for name, value in sections["all"].items() if name in defaults}
    values = shared | sections["notebooks"].get(notebook, {})
    check(values, defaults, f"params/{size}.yaml, {notebook}")
    return values


def with_defaults(size: str, notebook: str) -> dict[str, Any]:
    """Return all parameters that a notebook runs with at a size.

    Example:
        >>> with_defaults("paper", "02_causal_flow")["n_epochs"]
        300
    """
    return defaults_of(notebook) | given(size, notebook)


def of_fits(size: str, params: Path = io.PARAMS) -> dict[str, Any]:
    """Return the parameters of workflow/fit.py at a size.

    Raises: ValueError: one is missing or unknown, or of another type
        than at the paper's size.

    Example:
        >>> of_fits("smoke")["n_epochs"]["loan_carma"], of_fits("smoke")["n_recourse"]
        (2, 600)
    """
    sections, paper = read(size, params), read("paper")
    for section in ("all", "fits"):
        check_like(sections[section], paper[section], f"params/{size}.yaml, {section}")
    return sections["all"] | sections["fits"]


def check_size(size: str, params: Path = io.PARAMS) -> None:
    """Raise ValueError unless a size fits all notebooks and workflow/fit.py."""
    names = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
    sections = read(size, params)
    checks.one_of("notebook", sections["notebooks"], tuple(names))
    for name in names:
        given(size, name, params)
    of_fits(size, params)


def read(size: str, params: Path = io.PARAMS) -> dict[str, Any]:
    """Return the three sections of a size."""
    sections = io.load_yaml(params / f"{size}.yaml")
    check_like(sections, dict.fromkeys(SECTIONS), f"params/{size}.yaml")
    return sections


def defaults_of(notebook: str) -> dict[str, Any]:
    """Return names and values of a notebook's parameters cell, as papermill reads it.

    Example:
        >>> defaults_of("00_start_here")["n_values"]
        25
    """
    import papermill  # takes a second, and most fits ask for no notebook

    cell = papermill.inspect_notebook(NOTEBOOKS / f"{notebook}.ipynb")
    return {name: ast.literal_eval(entry["default"]) for name, entry in cell.items()}


def check(values: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> None:
    """Raise ValueError unless each value has a name and a type of the defaults.

    Arguments:
        values, defaults: By name; where the default is None the value
            may be anything, where it is a fraction also a whole
            number.
        where: The values stand, for the message.

    Example:
        >>> check({"n_seeds": 3}, {"n_seeds": 10}, "mine.yaml")
        >>> check({"n_seeds": "3"}, {"n_seeds": 10}, "mine.yaml")
        Traceback (most recent call last):
        ValueError: mine.yaml: n_seeds is '3', a str; expected an int, such as 10.
    """
    checks.one_of(f"parameter of {where}:", values, tuple(defaults))
    for name, value in values.items():
        default = defaults[name]
        is_number = isinstance(default, float) and type(value) is int
        if default is not None and type(value) is not type(default) and not is_number:
            raise ValueError(
                f"{where}: {name} is {value!r}, a {type(value).__name__}; expected an "
                f"{type(default).__name__}, such as {default!r}."
            )


def check_like(values: Mapping[str, Any], model: Mapping[str, Any], where: str) -> None:
    """Raise ValueError unless there are all names of a model, with values of its types."""
    check(values, model, where)
    if missing := [name for name in model if name not in values]:
        raise ValueError(f"{where} lacks {', '.join(missing)}.")
    for name, value in model.items():
        if isinstance(value, Mapping):
            check_like(values[name], value, f"{where}, {name}")


if __name__ == "__main__":
    values = given(sys.argv[1], sys.argv[2])
    print(yaml.safe_dump(values, default_flow_style=True, width=10**6))
