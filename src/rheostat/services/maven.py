"""Downloads Java archives from Maven Central once, with the Ivy that Spark uses for its packages."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from rheostat.model.errors import UserError
from rheostat.services.java import java_command, spark_home

FETCH_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Bundle:
    """Archives that belong together, under a name that changes with their versions."""

    name: str
    artifacts: tuple[str, ...]  # group:name:version
    with_dependencies: bool
    otherwise: str  # what to do if they cannot be downloaded

    @property
    def folder(self) -> Path:
        """The folder of its archives; filled completely, by hand, or not at all."""
        return cache_folder() / "jars" / self.name

    def cached(self) -> tuple[Path, ...]:
        """Return the archives that are there already."""
        return tuple(sorted(self.folder.glob("*.jar")))


def cache_folder() -> Path:
    """Return Rheostat's folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rheostat"


def resolve(bundle: Bundle, say: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """Return the archives of a bundle, downloaded at the first use."""
    if archives := bundle.cached():
        return archives
    try:
        bundle.folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(bundle.folder.parent / "lock"):
            if not bundle.cached():  # another process may have downloaded it meanwhile
                say(f"downloading {bundle.name} from Maven Central, once")
                _fetch(bundle)
                say(f"{len(bundle.cached())} archives are in {bundle.folder}")
    except OSError as error:
        raise _cannot(bundle, str(error)) from None
    return bundle.cached()


def _fetch(bundle: Bundle) -> None:
    ivy = sorted((spark_home() / "jars").glob("ivy-*.jar"))
    if not ivy:
        raise _cannot(bundle, f"{spark_home()} holds no Ivy")
    downloads = bundle.folder.parent / "downloads"  # kept by a failed attempt for the next one
    with tempfile.TemporaryDirectory(dir=bundle.folder.parent) as scratch:
        wanted, jars = Path(scratch) / "ivy.xml", Path(scratch) / "jars"
        wanted.write_bytes(_module(bundle))
        command = [java_command(), "-Xmx256m", "-jar", str(ivy[-1]), "-warn", "-confs", "default"]
        command += ["-ivy", str(wanted), "-cache", str(downloads)]
        command += ["-retrieve", f"{jars}/[artifact]-[revision].[ext]"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=FETCH_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise _cannot(bundle, f"not finished after {FETCH_SECONDS:g} s") from None
        if done.returncode or not any(jars.glob("*.jar")):
            raise _cannot(bundle, _reason(done.stdout + done.stderr))
        shutil.rmtree(bundle.folder, ignore_errors=True)  # empty, as there was something to download
        jars.rename(bundle.folder)
    shutil.rmtree(downloads, ignore_errors=True)


def _module(bundle: Bundle) -> bytes:
    """Write the bundle as an Ivy module that depends on its artifacts."""
    module = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(module, "info", organisation="rheostat", module=bundle.name)
    ElementTree.SubElement(ElementTree.SubElement(module, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(module, "dependencies")
    # Ivy calls a Maven artifact alone `master`, and with all that it needs at run time `default`.
    configuration = "default" if bundle.with_dependencies else "master"
    for artifact in bundle.artifacts:
        group, name, version = artifact.split(":")
        ElementTree.SubElement(
            dependencies, "dependency", org=group, name=name, rev=version, conf=f"default->{configuration}"
        )
    return ElementTree.tostring(module)


def _reason(log: str) -> str:
    """Return why Ivy could not reach a server, or else what it did not find there."""
    lines = [line.strip(" \t:") for line in log.splitlines()]
    for sign in ("access error", "not found", "FAILED", "rror"):
        for line in lines:
            if sign in line:
                return line[:300]
    return "Ivy gave no reason"


def _cannot(bundle: Bundle, reason: str) -> UserError:
    by_hand = f"put the jars of {', '.join(bundle.artifacts)}"
    by_hand += " with their dependencies" if bundle.with_dependencies else ""
    return UserError(
        f"{bundle.name} cannot be downloaded from Maven Central ({reason}); {by_hand} into {bundle.folder}"
        + (f", or {bundle.otherwise}" if bundle.otherwise else "")
    )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process download; the others wait, and then find the archives."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
