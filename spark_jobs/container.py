"""The entry point of the jobs' images: the jobs themselves, or a driver or executor of Spark on Kubernetes.

Spark on Kubernetes starts its pods with the argument `driver` or `executor`.
Variables of the environment contain the rest, as for Spark's own images.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pyspark

from spark_jobs.session import find_java
from spark_jobs.storage import JobError
from spark_jobs.work import Exit

_HOME: Final = Path(pyspark.__file__).parent
_BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION: Final = "SPARK_JAVA_OPT_"


def main(arguments: Sequence[str] | None = None) -> int:
    """Replace this process by the command of the arguments; return only if there is none."""
    try:
        command = command_of(sys.argv[1:] if arguments is None else arguments, os.environ)
    except (JobError, KeyError) as error:
        reason = f"the variable {error} is missing: Spark on Kubernetes sets it" if isinstance(error, KeyError) else error
        sys.stderr.write(f"spark_jobs: {reason}\n")
        return Exit.USAGE
    if _BACKEND in command:
        os.chdir(tempfile.gettempdir())  # where an executor puts the files of --py-files
    os.execvp(command[0], command)


def command_of(arguments: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """Return the command of a container.

    Raises `KeyError` for a variable that Spark did not set, `JobError` without Java.
    """
    match arguments:
        case ["driver", *rest]:
            address = environ["SPARK_DRIVER_BIND_ADDRESS"]
            settings = {"spark.driver.bindAddress": address, "spark.executorEnv.SPARK_DRIVER_POD_IP": address}
            options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
            return [str(_HOME / "bin" / "spark-submit"), *options, "--deploy-mode", "client", *rest]
        case ["executor", *_]:
            return _executor(environ)
        case _:
            return [sys.executable, "-m", "spark_jobs", *arguments]


def _executor(environ: Mapping[str, str]) -> list[str]:
    numbered = {int(name.removeprefix(_JAVA_OPTION)): value for name, value in environ.items() if name.startswith(_JAVA_OPTION)}
    configuration = environ.get("SPARK_CONF_DIR", str(_HOME / "conf"))
    classes = ":".join(filter(None, (configuration, environ.get("SPARK_CLASSPATH"), f"{_HOME / 'jars'}/*")))
    memory = environ["SPARK_EXECUTOR_MEMORY"]
    named = {
        "driver-url": environ["SPARK_DRIVER_URL"],
        "executor-id": environ["SPARK_EXECUTOR_ID"],
        "cores": environ["SPARK_EXECUTOR_CORES"],
        "app-id": environ["SPARK_APPLICATION_ID"],
        "hostname": environ["SPARK_EXECUTOR_POD_IP"],
        "resourceProfileId": environ["SPARK_RESOURCE_PROFILE_ID"],
        "podName": environ["SPARK_EXECUTOR_POD_NAME"],
    }
    return [
        str(find_java(environ) / "bin" / "java"),
        *(numbered[number] for number in sorted(numbered)),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        classes,
        _BACKEND,
        *(part for name, value in named.items() for part in (f"--{name}", value)),
    ]


if __name__ == "__main__":
    sys.exit(main())
