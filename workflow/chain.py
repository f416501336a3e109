"""What the batch is made of: notebooks and fits, what each needs, reads and leaves."""

import re
from collections.abc import Collection, Iterable

# models that are always needed together
LOAN = ("loan_classifier", "loan_flow")
HARD = (*LOAN, "loan_icarma_hard")
STEEP = "loan_classifier_steep"  # another bank, fitted at a higher rate
CREDIT = ("gmsc_scaler", "gmsc_classifier", "gmsc_flow")

# A notebook, and the models that it reads.
NEEDS: dict[str, tuple[str, ...]] = {
    "00_start_here": (*LOAN, "loan_icarma_ranking"),
    "01_data_and_scm": (),
    "02_causal_flow": ("loan_classifier",),
    "03_icarma_training": (*LOAN, STEEP),
    "03b_choice_of_settings": (*HARD, "loan_icarma_ranking", "loan_chosen_ranking"),
    "04_hard_constraints": (*HARD, STEEP, "loan_chosen_ranking", "loan_icarma_leaky"),
    "05_soft_constraints": (
        *HARD,
        "loan_icarma_score",
        "loan_icarma_ranking",
        "loan_icarma_rco",
        "loan_icarma_weights",
        "loan_chosen_ranking",
        "loan_chosen_score",
    ),
    "06_fairness": HARD,
    "07_gmsc_transfer": (
        *CREDIT,
        "gmsc_icarma",
        "gmsc_icarma_past",
        "gmsc_chosen",
        "gmsc_other_flows",
    ),
    "08_exact_and_unlocked": (
        *HARD,
        *CREDIT,
        "gmsc_other_flows",
        "loan_how_sure.csv",
        "gmsc_how_sure.csv",
    ),
    "09_human_in_the_loop": (
        *HARD,
        "hare",
        "hare_as_published.csv",
        "hare_own_ideals.csv",
        "gmsc_hare_as_published.csv",
        "gmsc_hare_own_ideals.csv",
        "loan_icarma_ranking",
        *CREDIT,
        "gmsc_icarma",
        "gmsc_other_flows",
    ),
    "10_evaluation_functions": (
        *HARD,
        *CREDIT,
        "willingness.csv",
        "willingness_latent.csv",
    ),
    "11_propose_and_verify": (
        *HARD,
        "loan_propose",
        "loan_propose_others",
        "loan_other_flows",
        "loan_icarma_ranking",
        "loan_icarma_score",
        "loan_carma",
        *CREDIT,
        "gmsc_icarma",
        "gmsc_other_flows",
        "gmsc_propose",
    ),
    "12_your_own_problem": (),
    "13_against_the_field": LOAN,
    "reference": HARD,
}
# What is fitted outside of notebooks: by which program of workflow, from which models.
FITS: dict[str, tuple[str, tuple[str, ...]]] = {
    "loan_icarma_score": ("networks", LOAN),
    "loan_icarma_ranking": ("networks", LOAN),
    "loan_icarma_rco": ("networks", LOAN),
    "loan_icarma_weights": ("networks", LOAN),
    "loan_icarma_leaky": ("networks", LOAN),
    "loan_carma": ("networks", LOAN),
    "loan_chosen_ranking": ("networks", LOAN),
    "loan_chosen_score": ("networks", LOAN),
    "gmsc_icarma": ("networks", ()),
    "gmsc_icarma_past": ("networks", (*CREDIT, "gmsc_other_flows")),
    "gmsc_chosen": ("networks", CREDIT),
    "gmsc_other_flows": ("other_flows", ()),
    "loan_other_flows": ("other_flows", ()),
    "loan_propose": ("proposers", LOAN),
    "loan_propose_others": ("proposers", LOAN),
    "gmsc_propose": ("proposers", CREDIT),
    "hare": ("hare", ()),
    "gmsc_hare": ("hare", ()),
    "willingness": ("willingness", ()),
    "loan_how_sure": ("how_sure", LOAN),
    "gmsc_how_sure": ("how_sure", CREDIT),
}
# The code that a job runs again for: its program, and folders of lib. Notebooks show
# figures and fairness as well.
LIB = ("lib/*.py", "lib/method/*.py", "lib/search/*.py", "lib/paper/*.py")
SHOWN = ("lib/paper/fairness/*.py", "lib/paper/pictures/*.py")
BEYOND_FOLDERS: dict[str, tuple[str, ...]] = {
    "09_human_in_the_loop": ("hare",),
    "10_evaluation_functions": ("evaluation",),
    "11_propose_and_verify": ("hare", "propose"),
    "12_your_own_problem": ("own_table", "propose"),
    "hare": ("hare",),
    "willingness": ("evaluation",),
    "proposers": ("propose",),
}
# The models that a notebook leaves, or a fit; those of other fits have the fit's name.
LEAVES: dict[str, tuple[str, ...]] = {
    "01_data_and_scm": ("loan_classifier", STEEP),
    "02_causal_flow": ("loan_flow",),
    "03_icarma_training": ("loan_icarma_hard", "loan_icarma_hard_history.csv"),
    "gmsc_icarma": (*CREDIT, "gmsc_icarma"),
    "loan_propose": ("loan_propose", "loan_propose_history.csv"),
    "hare": ("hare", "hare_as_published.csv", "hare_own_ideals.csv"),
    "gmsc_hare": ("gmsc_hare", "gmsc_hare_as_published.csv", "gmsc_hare_own_ideals.csv"),
    "willingness": ("willingness.csv", "willingness_latent.csv"),
    "loan_how_sure": ("loan_how_sure.csv",),
    "gmsc_how_sure": ("gmsc_how_sure.csv",),
}
# What else each reads, beside its notebook and the parameters of its size.
HARE = ("data/adult_*", "data/compas_*", "data/published/hare_*")
CALIBRATED = ("params/calibrated.yaml",)
EDGES = ("params/gmsc_edges.csv",)
READS: dict[str, tuple[str, ...]] = {
    "00_start_here": ("page/*.*", *CALIBRATED),
    "01_data_and_scm": CALIBRATED,
    "03_icarma_training": CALIBRATED,
    "03b_choice_of_settings": (
        "params/calibrat*",
        "params/chosen_*",
        "data/published/icarma_*",
    ),
    "04_hard_constraints": (*CALIBRATED, "data/published/icarma_*"),
    "05_soft_constraints": (*CALIBRATED, "data/published/icarma_*"),
    "06_fairness": (
        "params/groups.yaml",
        "params/scenarios/*",
        "benchmarks/age_audit.csv",
    ),
    "07_gmsc_transfer": (
        "params/gmsc_*",
        *CALIBRATED,
        "data/published/icarma_*",
    ),
    "08_exact_and_unlocked": ("benchmarks/results.csv", *CALIBRATED, *EDGES),
    "09_human_in_the_loop": (*HARE, *EDGES),
    "10_evaluation_functions": (
        "data/published/tominaga_*",
        "tests/reference/gamm_t1*",
        *EDGES,
    ),
    "11_propose_and_verify": (
        "benchmarks/results.csv",
        "benchmarks/walks.csv",
        *EDGES,
    ),
    "12_your_own_problem": ("data/credit_union.csv",),
    "13_against_the_field": ("benchmarks/rivals.csv",),
    "reference": ("benchmarks/properties.csv",),
    **dict.fromkeys(
        (
            "loan_icarma_score",
            "loan_icarma_ranking",
            "loan_icarma_rco",
            "loan_icarma_weights",
            "loan_carma",
        ),
        CALIBRATED,
    ),
    "loan_icarma_leaky": (*CALIBRATED, "data/published/icarma_*"),
    "loan_chosen_ranking": ("params/chosen_ranking.yaml",),
    "loan_chosen_score": ("params/chosen_score.yaml",),
    "gmsc_icarma": (*CALIBRATED, *EDGES),
    "gmsc_icarma_past": (*CALIBRATED, *EDGES),
    "gmsc_chosen": ("params/chosen_transfer.yaml", *EDGES),
    "gmsc_other_flows": ("params/gmsc_graphs.yaml", *EDGES),
    "loan_other_flows": ("params/{size}/02_causal_flow.yaml",),
    "gmsc_propose": EDGES,
    "hare": HARE,
    "gmsc_hare": ("data/give_me_some_credit_*", "data/published/hare_*"),
    "willingness": ("data/published/tominaga_tableS2.csv",),
    "loan_how_sure": ("params/{size}/08_exact_and_unlocked.yaml",),
    "gmsc_how_sure": ("params/{size}/08_exact_and_unlocked.yaml", *EDGES),
}
# The notebooks about the paper, and those that go beyond it.
BEYOND = tuple(name for name in NEEDS if "08" <= name < "14")
PARTS = {"paper": tuple(name for name in NEEDS if name not in BEYOND), "beyond": BEYOND}
# What is fitted to, and drawn of, Give Me Some Credit: all of notebook 07, and elsewhere
# what has its name among the words of its own.
OF_THE_DATA = re.compile(r"07_|(.*_)?gmsc[_.]")


def left_by(name: str) -> tuple[str, ...]:
    """Return the models that a notebook or a fit leaves.

    Example:
        >>> left_by("02_causal_flow"), left_by("04_hard_constraints"), left_by("loan_carma")
        (('loan_flow',), (), ('loan_carma',))
    """
    return LEAVES.get(name, () if name in NEEDS else (name,))


def needed_by(name: str) -> tuple[str, ...]:
    """Return the models that a notebook or a fit reads.

    Example:
        >>> needed_by("gmsc_propose")
        ('gmsc_scaler', 'gmsc_classifier', 'gmsc_flow')
    """
    return NEEDS[name] if name in NEEDS else FITS[name][1]


def code_of(name: str) -> list[str]:
    """Return patterns of the files whose code a notebook or a fit runs.

    Example:
        >>> code_of("hare")[0], code_of("hare")[-1]
        ('workflow/hare.py', 'lib/beyond/hare/*.py')
    """
    is_notebook = name in NEEDS
    program = name if is_notebook else FITS[name][0]
    beyond = [f"lib/beyond/{folder}/*.py" for folder in BEYOND_FOLDERS.get(program, ())]
    if is_notebook:
        return [*LIB, *SHOWN, *beyond]
    return [f"workflow/{program}.py", "workflow/fitting.py", *LIB, *beyond]


def file_of(model: str) -> str:
    """Return the name of a model's file.

    Example:
        >>> file_of("loan_flow"), file_of("willingness.csv")
        ('loan_flow.safetensors', 'willingness.csv')
    """
    return model if "." in model else f"{model}.safetensors"


def run_for(notebooks: Iterable[str]) -> set[str]:
    """Return the notebooks and fits that run for some notebooks, with these.

    Example:
        >>> sorted(run_for(["03_icarma_training"]))
        ['01_data_and_scm', '02_causal_flow', '03_icarma_training']
    """
    maker = {model: name for name in (*NEEDS, *FITS) for model in left_by(name)}
    names: set[str] = set()
    waiting = set(notebooks)
    while waiting:
        name = waiting.pop()
        names.add(name)
        waiting |= {maker[model] for model in needed_by(name)} - names
    return names


def is_of(notebooks: Collection[str], folder: str, file: str) -> bool:
    """Return whether a model, a table or a figure is made when some notebooks are run.

    Example:
        >>> paper = PARTS["paper"]
        >>> is_of(paper, "models", "loan_flow.safetensors"), is_of(paper, "models", "hare")
        (True, False)
        >>> is_of(paper, "tables", "04_hard.csv"), is_of(paper, "figures", "11_front.pdf")
        (True, False)
    """
    names = run_for(notebooks)
    if folder == "models":
        return file in {file_of(model) for name in names for model in left_by(name)}
    return file.partition("_")[0] in {name.partition("_")[0] for name in names}


def is_of_the_data(file: str) -> bool:
    """Return whether a model, a table or a figure is of Give Me Some Credit, by its name.

    Example:
        >>> is_of_the_data("11_gmsc.csv"), is_of_the_data("11_fronts.csv")
        (True, False)
    """
    return OF_THE_DATA.match(file) is not None
