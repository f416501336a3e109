"""Workers that share a search for settings: their database, and trials that they abandon.

Optuna keeps what workers have tried in a database. A worker that is
killed cannot say so: its trials would be open for ever. So a worker
leaves a sign of life of its open trials every minute, and the others
fail what had none for two, and put the same proposals back into the
queue. Optuna does so where it calls a function for each trial; here
many trials are trained at once, so the signs are left here.
"""

import contextlib
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from types import TracebackType

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback, fail_stale_trials
from optuna.trial import Trial
from sqlalchemy import exc, text

INTERVAL = 60  # seconds between signs of life
N_RETRIES = 3  # of a proposal whose worker was killed
N_ATTEMPTS = 20  # to make the tables, a second apart
UNSIGNED = text(  # the trials of a study that were begun without a sign of life
    "SELECT trial_id FROM trials LEFT JOIN trial_heartbeats USING (trial_id) "
    "WHERE study_id = :study AND state = 'RUNNING' AND heartbeat IS NULL"
)


def database(url: str, interval: int = INTERVAL) -> RDBStorage:
    """Return the storage behind a database URL; its tables are made if it has none.

    Two workers that find an empty database at once both begin to make
    the tables. One of them fails, and tries again here until the other
    one is done.

    Arguments:
        url: For instance sqlite:///tuning.db, or
            postgresql+psycopg://user@host/database.
        interval: Seconds between signs of life; a trial without one
            for twice as long counts as abandoned.
    Raises: ValueError: the URL is not understood, its driver is not
        installed, the database does not answer, or another version of
        Optuna made it.
    """
    for attempt in range(1, N_ATTEMPTS + 1):
        try:
            with _experimental():
                return RDBStorage(
                    url,
                    engine_kwargs={"pool_pre_ping": True},  # hours may lie between two uses
                    heartbeat_interval=interval,
                    heartbeat_stale_trial_callback=RetryHeartbeatStaleTrialCallback(
                        N_RETRIES
                    ),
                )
        except (exc.ArgumentError, ImportError) as error:
            raise ValueError(
                f"The storage {_without_password(url)} is not understood, or its driver is "
                "not installed. Expected a URL such as sqlite:///tuning.db or "
                "postgresql+psycopg://user@host/database."
            ) from error
        except exc.DatabaseError as error:
            said = str(error.orig).strip() or type(error.orig).__name__
            why = said.splitlines()[0]
            # another worker was faster; the words are SQLite's
            is_race = isinstance(error, exc.IntegrityError | exc.ProgrammingError)
            is_race |= any(word in why for word in ("already exists", "is locked"))
            if is_race and attempt < N_ATTEMPTS:
                time.sleep(1)
                continue
            raise ValueError(
                f"The database {_without_password(url)} does not answer: {why}"
            ) from error
        except RuntimeError as error:  # its tables are another version's
            raise ValueError(
                f"The database {_without_password(url)} was made by another version of "
                f"Optuna: expected one of {optuna.__version__}. Name another database, or "
                f"move that one away. Optuna says: {error}"
            ) from error
    raise AssertionError("the last attempt returns or raises")


class SignsOfLife:
    """Leave signs of life of the trials that are begun here, until the `with` block ends.

    Arguments:
        storage: Of the trials; None: nobody else sees them, and no
            sign is left.
    """

    def __init__(self, storage: RDBStorage | None) -> None:
        self.storage = storage
        self.trials: list[int] = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> "SignsOfLife":
        if self.storage is not None:
            self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.ended.set()
        if self.storage is not None:
            self.thread.join()

    def ask(self, study: optuna.Study) -> Trial:
        """Return the next trial of a study, with a first sign of its life."""
        with warnings.catch_warnings():
            # Optuna itself leaves none here
            warnings.filterwarnings("ignore", "Heartbeat of storage is supposed")
            trial = study.ask()
        if self.storage is not None:
            own = self.storage.get_study_id_from_name(study.study_name)
            found = self.storage.get_trial_id_from_study_id_trial_number(own, trial.number)
            self.storage.record_heartbeat(found)
            self.trials.append(found)
        return trial

    def fail_abandoned(self, studies: Iterable[optuna.Study]) -> None:
        """Fail trials whose worker shows no sign of life, and queue their proposals again.

        A trial that has had no sign at all gets its first one here: so
        it is failed later, if its worker ended before it left one.

        Arguments:
            studies: Of the storage.
        """
        if self.storage is None:
            return
        for study in studies:
            own = self.storage.get_study_id_from_name(study.study_name)
            with self.storage.engine.connect() as connection:
                unsigned = connection.scalars(UNSIGNED, {"study": own}).all()
            for trial_id in unsigned:
                self.storage.record_heartbeat(trial_id)
            with _experimental():
                fail_stale_trials(study)

    def _go_on(self) -> None:
        assert self.storage is not None
        while not self.ended.wait(self.storage.heartbeat_interval):
            for trial_id in self.trials:
                if self.ended.is_set():
                    return
                # a database that is away for a moment is there for the next sign
                with contextlib.suppress(StorageInternalError, exc.SQLAlchemyError):
                    self.storage.record_heartbeat(trial_id)


@contextlib.contextmanager
def _experimental() -> Iterator[None]:
    """Use what Optuna calls experimental without a warning each time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        yield


def _without_password(url: str) -> str:
    """Return a URL that may be printed."""
    before, at, host = url.partition("?")[0].rpartition("@")
    scheme, slashes, user = before.partition("://")
    return f"{scheme}{slashes}{user.split(':')[0]}{at}{host}"
