"""`rheostat doctor`: what this machine lacks for running Spark, and what to do about it."""

import typer

from rheostat.cli import console


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("doctor", epilog="Example: rheostat doctor --json")(_doctor)


def _doctor(as_json: bool = typer.Option(False, "--json", help="Print the result as JSON.")) -> None:
    """Check that this machine can run Spark. Looks at Java, control groups, ports, memory and Kafka."""
    from rheostat.services.machine_checks import check_machine

    findings = check_machine()
    if as_json:
        console.print_json(
            [{"what": f.subject, "good": f.ok, "needed": f.required, "says": f.message} for f in findings]
        )
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FAIL" if finding.required else "note"
            console.out.print(f"{mark} {finding.subject}: {finding.message}", markup=False)
    if any(finding.required and not finding.ok for finding in findings):
        raise typer.Exit(1)
