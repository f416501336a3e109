"""Progress bars for whoever is watching, and none in executed notebooks."""

import os
import sys
from collections.abc import Callable

from tqdm.auto import tqdm


def bar(label: str) -> Callable[[range], range]:
    """Return a function that wraps a range of steps in a progress bar.

    The bar is shown in JupyterLab and in a terminal, and nowhere
    else. A Jupyter server names the session of each kernel that it
    starts; papermill, nbval and nbconvert do not.

    Arguments:
        label: What stands in front of the bar.

    Example:
        >>> [step for step in bar("fit")(range(3))]
        [0, 1, 2]
    """
    watched = "JPY_SESSION_NAME" in os.environ or sys.stderr.isatty()
    return lambda steps: tqdm(steps, desc=label, leave=False, disable=not watched)
