"""Progress bars for whoever is watching, and none in executed notebooks."""

import os
import sys
from collections.abc import Callable

from tqdm.auto import tqdm


def bar(label: str) -> Callable[[range], range]:
    """A wrapper for a range of steps that shows a bar in JupyterLab and in a terminal, and nothing headless.

    A Jupyter server names the session of each kernel it starts; papermill, nbval and nbconvert do not.
    """
    watched = "JPY_SESSION_NAME" in os.environ or sys.stderr.isatty()
    return lambda steps: tqdm(steps, desc=label, leave=False, disable=not watched)
