"""A throw-away Slurm on this machine: slurmctld, two slurmd, munge; no systemd, no cgroups, no database.

Everything lies in one folder, and every daemon is stopped by the pid that it wrote there, never by its name. One machine
plays several nodes (Debian's slurmd has multiple-slurmd support, `-N`). Memory limits work without cgroups: the job
accounting gatherer samples every second and kills what exceeds its `--mem`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

CONF = """\
ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/run/munge.sock
CredType=cred/munge
SlurmctldPidFile={place}/run/slurmctld.pid
SlurmdPidFile={place}/run/slurmd.%n.pid
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool.%n
SlurmctldLogFile={place}/log/slurmctld.log
SlurmdLogFile={place}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={place}/log/jobcomp.txt
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
TaskProlog={place}/bin/taskprolog
Epilog={place}/bin/epilog
MinJobAge=3600
EnforcePartLimits=ALL
ReturnToService=2
KillWait=5
SlurmdTimeout=60
SchedulerParameters=sched_interval=5,batch_sched_delay=0,sched_min_interval=0,bf_interval=5
GresTypes=gpu
"""

#: The executor's job step clears SLURM_CONF before it calls srun; a cluster with /etc/slurm/slurm.conf needs no such help.
SRUN = '#!/bin/sh\nSLURM_CONF={conf} exec {srun} "$@"\n'
#: proctrack/linuxproc loses children whose parent died first. Every task notes its session, and the epilog ends what is
#: left of exactly those sessions.
PROLOG = "#!/bin/sh\nps -o sid= -p $$ >> {place}/run/sids.$SLURM_JOB_ID\n"
EPILOG = """\
#!/bin/sh
f={place}/run/sids.$SLURM_JOB_ID
[ -f "$f" ] || exit 0
for s in $(sort -u "$f"); do for p in $(ps -s "$s" -o pid=); do kill -9 "$p" 2>/dev/null; done; done
rm -f "$f"
exit 0
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """Two nodes of two processors, partitions `main` (default) and `short` (10 minutes), one pretended GPU a node."""

    def __init__(self, place: Path, nodes: int = 2, cpus: int = 2, memory: int = 16000) -> None:
        self.place, self.nodes = place, [f"n{number}" for number in range(1, nodes + 1)]
        self.conf = place / "slurm.conf"
        for name in ("munge", "state", "log", "run", "bin", "gpu"):
            (place / name).mkdir(parents=True)
        (place / "munge").chmod(0o700)
        (place / "run").chmod(0o755)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        host = socket.gethostname().split(".")[0]
        gpu = self._pretend_gpu()
        lines = [CONF.format(place=place, user=user, host=host, port=free_port())]
        lines += [
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs={cpus} "
            f"RealMemory={memory} {'Gres=gpu:1' if gpu else ''} State=UNKNOWN"
            for name in self.nodes
        ]
        lines += ["PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"]
        lines += ["PartitionName=short Nodes=ALL MaxTime=10 State=UP"]
        self.conf.write_text("\n".join(lines) + "\n")
        self.has_gpu = gpu is not None
        (place / "gres.conf").write_text(f"Name=gpu File={gpu}\n" if gpu else "")
        (place / "munge" / "key").write_bytes(os.urandom(1024))
        (place / "munge" / "key").chmod(0o600)
        self._script("srun", SRUN.format(conf=self.conf, srun=shutil.which("srun")))
        self._script("taskprolog", PROLOG.format(place=place))
        self._script("epilog", EPILOG.format(place=place))
        self.environment = os.environ | {
            "SLURM_CONF": str(self.conf),
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin",
        }

    def _pretend_gpu(self) -> Path | None:
        """A character device that plays a GPU; needs root."""
        device = self.place / "gpu" / "gpu0"
        made = subprocess.run(["mknod", str(device), "c", "1", "3"], capture_output=True, check=False)
        return device if made.returncode == 0 else None

    def _script(self, name: str, text: str) -> None:
        path = self.place / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, command: str, check: bool = True) -> str:
        """Standard output of a command with this cluster's environment."""
        done = subprocess.run(
            shlex.split(command), env=self.environment, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def _pid(self, name: str) -> int | None:
        path = self.place / "run" / f"{name}.pid"
        text = path.read_text().strip() if path.is_file() else ""
        return int(text) if text else None

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle."""
        place = self.place
        self.run(
            f"munged --force --key-file={place}/munge/key --seed-file={place}/munge/seed "
            f"--socket={place}/run/munge.sock --pid-file={place}/run/munged.pid --log-file={place}/log/munged.log "
            "--num-threads=2"
        )
        self.start_controller()
        for name in self.nodes:
            (place / f"spool.{name}").mkdir(exist_ok=True)
            self.run(f"slurmd -f {self.conf} -N {name}")
        self.wait_for(lambda: self._idle() == len(self.nodes), "all nodes idle", 60)

    def start_controller(self) -> None:
        """Start slurmctld; it reads its saved state."""
        self.run(f"slurmctld -f {self.conf}")

    def stop_controller(self) -> None:
        """Stop slurmctld alone: jobs run on, and every status command fails."""
        self._end("slurmctld")

    def _end(self, name: str) -> None:
        pid = self._pid(name)
        if pid is None:
            return
        for sent in (signal.SIGTERM, signal.SIGKILL):
            for _ in range(100):
                try:
                    os.kill(pid, sent if _ == 0 else 0)
                except ProcessLookupError:
                    return
                time.sleep(0.1)

    def stop(self) -> None:
        """Cancel what is left, then stop every daemon by its pid."""
        for job in sorted(set(self.run("squeue -h -o %A", check=False).split())):
            self.run(f"scancel {job}", check=False)
        end = time.monotonic() + 15
        while self.run("squeue -h", check=False).strip() and time.monotonic() < end:
            time.sleep(0.2)
        for name in (*(f"slurmd.{node}" for node in self.nodes), "slurmctld", "munged"):
            self._end(name)

    def _idle(self) -> int:
        lines = set(self.run("sinfo -h -N -o '%N %T'", check=False).splitlines())
        return sum(line.endswith(" idle") for line in lines)

    def jobs(self) -> dict[int, tuple[str, str, str]]:
        """Every job that the controller remembers: state, node, comment (rule and shard)."""
        lines = self.run("squeue -h --states=all -o '%A|%T|%N|%k'").splitlines()
        rows = [line.split("|", 3) for line in lines]
        return {int(job): (state, node, comment) for job, state, node, comment in rows}

    def running(self, shard: str = "") -> list[int]:
        """Numbers of the running jobs (of one shard)."""
        return [
            job for job, (state, _, comment) in self.jobs().items() if state == "RUNNING" and shard in comment
        ]

    @staticmethod
    def wait_for(true, what: str, seconds: float = 120) -> None:
        """Wait until `true()` holds."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"waited {seconds:.0f} s in vain: {what}"
            time.sleep(0.25)
