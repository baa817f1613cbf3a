"""The examples for Slurm and Kubernetes, as far as they can be checked without a cluster."""

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nits.cli import verbs

EXAMPLES = Path(__file__).parents[1] / "examples"


def options(command: str) -> Any:
    """Returns what the command line makes of `nits …` in an example."""
    words = shlex.split(command.replace("\\\n", " "))
    return verbs.parser().parse_args(words[words.index("nits") + 1 :])


def test_the_slurm_script_is_one() -> None:
    script = EXAMPLES / "slurm.sbatch"
    subprocess.run(["bash", "-n", str(script)], check=True)
    text = script.read_text()
    lines = text.splitlines()
    asked = [line for line in lines if line.startswith("#SBATCH")]
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert all(lines.index(line) < first for line in asked), "sbatch reads no option after commands"
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line) for line in asked)
    command = text[text.index("-m nits") :].replace('"$table"', "table").replace('"$model', '"m')
    assert options(command).checkpoint == "m.kept"


def test_the_kuberay_job_is_one() -> None:
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((EXAMPLES / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    spec = job["spec"]
    assert options(spec["entrypoint"]).engine == "ray"
    assert yaml.safe_load(spec["runtimeEnvYAML"])["env_vars"] == {"OMP_NUM_THREADS": "1"}
    cluster = spec["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    for group in groups:
        pod = group["template"]["spec"]
        mounted = {m["name"] for c in pod["containers"] for m in c["volumeMounts"]}
        assert mounted == {volume["name"] for volume in pod["volumes"]}
        assert all(isinstance(v, str) for v in group["rayStartParams"].values())
