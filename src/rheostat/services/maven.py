"""Fetches Java archives from Maven Central, once, with the Ivy that Spark itself resolves packages with."""

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
    """Archives that are used together, under a name that changes with their versions."""

    name: str
    artifacts: tuple[str, ...]  # group:name:version
    with_dependencies: bool
    otherwise: str  # what to do where they cannot be fetched

    @property
    def folder(self) -> Path:
        """Where its archives lie; filled at once or not at all, or by hand."""
        return cache_folder() / "jars" / self.name

    def cached(self) -> tuple[Path, ...]:
        """The archives that are there already."""
        return tuple(sorted(self.folder.glob("*.jar")))


def cache_folder() -> Path:
    """Rheostat's part of the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rheostat"


def resolve(bundle: Bundle, say: Callable[[str], None] = lambda _: None) -> tuple[Path, ...]:
    """The archives of a bundle, fetched if this is the first time."""
    if found := bundle.cached():
        return found
    try:
        bundle.folder.parent.mkdir(parents=True, exist_ok=True)
        with _alone(bundle.folder.parent / "lock"):
            if not bundle.cached():  # another process may have fetched it while this one waited
                say(f"fetching {bundle.name} from Maven Central, once")
                _fetch(bundle)
                say(f"{len(bundle.cached())} archives are in {bundle.folder}")
    except OSError as error:
        raise _cannot(bundle, str(error)) from None
    return bundle.cached()


def _fetch(bundle: Bundle) -> None:
    ivy = sorted((spark_home() / "jars").glob("ivy-*.jar"))
    if not ivy:
        raise _cannot(bundle, f"{spark_home()} holds no Ivy")
    downloads = bundle.folder.parent / "downloads"  # what a broken attempt leaves here is not fetched again
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
            raise _cannot(bundle, f"not done after {FETCH_SECONDS:g} s") from None
        if done.returncode or not any(jars.glob("*.jar")):
            raise _cannot(bundle, _reason(done.stdout + done.stderr))
        shutil.rmtree(bundle.folder, ignore_errors=True)  # empty, or there would be nothing to fetch
        jars.rename(bundle.folder)
    shutil.rmtree(downloads, ignore_errors=True)


def _module(bundle: Bundle) -> bytes:
    """Write the bundle as an Ivy module that depends on its artifacts."""
    module = ElementTree.Element("ivy-module", version="2.0")
    ElementTree.SubElement(module, "info", organisation="rheostat", module=bundle.name)
    ElementTree.SubElement(ElementTree.SubElement(module, "configurations"), "conf", name="default")
    dependencies = ElementTree.SubElement(module, "dependencies")
    # Ivy calls a Maven artifact alone `master`, and with all that it needs at run time `default`.
    part = "default" if bundle.with_dependencies else "master"
    for artifact in bundle.artifacts:
        group, name, version = artifact.split(":")
        ElementTree.SubElement(
            dependencies, "dependency", org=group, name=name, rev=version, conf=f"default->{part}"
        )
    return ElementTree.tostring(module)


def _reason(log: str) -> str:
    """Pick out of Ivy's report why it could not reach a server, or else what it did not find there."""
    lines = [line.strip(" \t:") for line in log.splitlines()]
    for sign in ("access error", "not found", "FAILED", "rror"):
        for line in lines:
            if sign in line:
                return line[:300]
    return "Ivy does not say why"


def _cannot(bundle: Bundle, reason: str) -> UserError:
    by_hand = f"put the jars of {', '.join(bundle.artifacts)}"
    by_hand += " with all that they need" if bundle.with_dependencies else ""
    return UserError(
        f"{bundle.name} cannot be fetched from Maven Central ({reason}); {by_hand} into {bundle.folder}"
        + (f", or {bundle.otherwise}" if bundle.otherwise else "")
    )


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One process fetches; the others wait, and find the archives there."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
