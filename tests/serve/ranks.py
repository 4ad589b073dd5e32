#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Usage: ranks.py [openmpi|mpich [short]]

--mpi: a server over two and three ranks of MPI on this machine, with the answers of the server alone, to the byte. A
rank that is killed, or stops to answer, ends the job, with a message that names it; the way out. short: the answers and
the way out alone."""

import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

from server import PROGRAM, Checks, Server, read_answer

begun = time.time()
check = Checks()
WITH = sys.argv[1] if len(sys.argv) > 1 else "openmpi"
LONG = "short" not in sys.argv
MPIRUN = shutil.which("mpirun." + WITH) or shutil.which("mpirun")
if MPIRUN is None:
    sys.exit(f"ranks: expected mpirun of {WITH}, found none")
OPEN_MPI = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader"]
SECONDS = 3  # --mpi-seconds: five times as many to load
GREEDY = {"prompt": "Once upon a time", "max_tokens": 24, "temperature": 0}
DRAWN = {"prompt": "The mouse said", "max_tokens": 24, "temperature": 0.9, "top_k": 40, "seed": 7}
LASTING = {"prompt": "Once upon a time", "max_tokens": 480, "temperature": 1, "seed": 1, "logit_bias": {"0": -100}}
TEXT = "/v1/completions"


class Job(Server):
    """Ranks of a server; rank 0's pages are asked."""

    def __init__(self, ranks, *flags, **how):
        run = [MPIRUN, *(OPEN_MPI if WITH == "openmpi" else []), "-n", str(ranks)]
        super().__init__("--mpi", "--mpi-seconds", str(SECONDS), *flags, start=run, **how)

    def event_of_rank(self, rank, name, seconds=60):
        found = lambda: next((each for each in self.log if each["event"] == name and each.get("rank") == rank), None)
        with self.events:
            assert self.events.wait_for(found, seconds), f"expected {name} of rank {rank}, found {self.log}"
            return found()

    def process_of(self, rank):
        return self.event_of_rank(rank, "rank")["process"]

    def send(self, rank, number):
        os.kill(self.process_of(rank), number)

    def ends(self, what, says, most):
        """The job ends by itself with an error that says so."""
        since = time.time()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            return check(False, f"{what}: the job goes on, its log is {self.log}")
        took = time.time() - since
        self.reader.join(10)
        text = "\n".join(each.get("detail", "") for each in self.log)
        check(code != 0 and says in text, f"{what}: expected '{says}', found exit code {code} and {text}")
        check(took < most, f"{what}: expected the end within {most} s, took {took:.1f}")

    def died(self, rank):
        """What mpirun says of a rank that was killed; MPICH's names the process, which the rank's log has."""
        return f"process rank {rank} " if WITH == "openmpi" else f"PID {self.process_of(rank)} RUNNING AT"


def whole(server, body):
    status, _, answer = server.ask("POST", TEXT, body)
    return (status, answer["choices"], answer["usage"]) if status == 200 else (status, answer)


def start_stream(server, body):
    link = socket.create_connection(("127.0.0.1", server.port), 60)
    data = json.dumps({**body, "stream": True}).encode()
    head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    link.sendall(head.encode() + b"\r\n\r\n" + data)
    return link


def pieces(link):
    """The text of a stream, and whether it is complete; its pieces depend on the time."""
    answer = read_answer(link).decode()
    found = [json.loads(line[6:]) for line in answer.splitlines() if line.startswith("data: {")]
    return "".join(each["choices"][0]["text"] for each in found if each.get("choices")), "data: [DONE]" in answer


def answers(server):
    """What clients get one after the other, by stream, and together."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return {
            "greedy": whole(server, GREEDY),
            "drawn": whole(server, DRAWN),
            "stream": pieces(start_stream(server, DRAWN)),
            "together": list(pool.map(lambda body: whole(server, body), (GREEDY, DRAWN, {**DRAWN, "seed": 8}))),
            "form": whole(server, {**GREEDY, "grammar": 'root ::= [a-z ]+ "."'}),
            "embedding": server.ask("POST", "/v1/embeddings", {"input": "A brave mouse"})[2].get("data"),
        }


def first_piece(link):
    """Waits until tokens come."""
    return link.recv(100000)


def listening_ports(process):
    """Ports of a process that listens, of IPv4 and IPv6."""
    own = set()
    for each in os.listdir(f"/proc/{process}/fd"):
        try:
            own.add(os.readlink(f"/proc/{process}/fd/{each}"))
        except OSError:
            pass
    out = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{process}/net/{table}") as file:
            for line in list(file)[1:]:
                words = line.split()
                if words[3] == "0A" and f"socket:[{words[9]}]" in own:
                    out.add(int(words[1].split(":")[1], 16))
    return out


alone = Server()
expected = answers(alone)
check.equal(alone.stop(), 0, "the server alone: exit code")
check(
    expected["greedy"][0] == expected["form"][0] == 200 and expected["stream"][1] and expected["embedding"],
    f"answers of the server alone: {expected}",
)

# Two ranks: the bytes of one process, one who goes away, and the way out.
job = Job(2, "--drain-seconds", "60")
for name, found in answers(job).items():
    check.equal(found, expected[name], f"two ranks, {name}")
health = job.ask("GET", "/health")[2]
check("(rank 1), " in health["device"] and "(rank 0)" in health["device"], f"the devices of both ranks: {health}")
check("\nintaglio_ranks 2\n" in job.ask("GET", "/metrics")[2], "the ranks in /metrics")
check([each.get("rank") for each in job.log if each["event"] == "listening"] == [0], "rank 0 alone listens")
check(job.port in listening_ports(job.process_of(0)), "the port is seen where it is")
check(job.port not in listening_ports(job.process_of(1)), "rank 1 does not listen")
if WITH == "openmpi":
    check.equal(listening_ports(job.process_of(1)), set(), "ports of rank 1")
gone = start_stream(job, LASTING)
first_piece(gone)
gone.close()
check.wait_until(lambda: job.ask("GET", "/health")[2]["running"] == 0, 10, "who goes away leaves the slot")
check.equal(whole(job, GREEDY), expected["greedy"], "and others go on")
link = start_stream(job, {**LASTING, "max_tokens": 30})
first_piece(link)
job.send(1, signal.SIGTERM)  # as mpirun does it: to all
job.process.send_signal(signal.SIGUSR1)
job.event("draining")
check(pieces(link)[1], "a stream ends whole behind the signal")
check.equal(job.process.wait(70), 0, "two ranks: exit code behind SIGUSR1 to mpirun")
check([each.get("rank") for each in job.log if each["event"] == "stopped"] == [0], f"the way out: {job.log}")

# Three ranks, cut where it is said; SIGTERM to rank 0.
job = Job(3, "--cut", "2,5")
for name, found in answers(job).items():
    check.equal(found, expected[name], f"three ranks, {name}")
check("layers 2 to 4," in job.event_of_rank(2, "stage")["detail"], f"the stage of rank 2: {job.log}")
job.send(0, signal.SIGTERM)
check.equal(job.process.wait(30), 0, "three ranks: exit code behind SIGTERM to rank 0")

# What cannot be.
for ranks, flags, says in (
    (1, (), "two ranks or more"),
    (2, ("--models", "."), "--models: expected nothing beside --mpi"),
    (2, ("--prompt-lookup", "4"), "--prompt-lookup: expected nothing beside --mpi"),
    (2, ("--devices", "0,0"), "--devices: expected nothing beside --mpi"),
    (2, ("--model", "https://localhost/x.gguf"), "expected a file that each rank has"),
    (2, ("--cut", "3,4"), "as many stages as ranks, 2"),
):
    run = [MPIRUN, *(OPEN_MPI if WITH == "openmpi" else []), "-n", str(ranks), PROGRAM, "--port", "0", "--mpi", *flags]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    check(done.returncode != 0 and says in done.stderr, f"{ranks} ranks, {flags}: expected '{says}', found {done}")
if not LONG:
    check.end("ranks of " + WITH, begun)

# A rank that is killed or stops while it loads.
for number, says in ((signal.SIGKILL, None), (signal.SIGSTOP, "rank 1: load its stage")):
    job = Job(2, wait=False)
    job.event_of_rank(1, "stage")
    job.send(1, number)
    job.ends(f"signal {number} in load", says or job.died(1), 5 * SECONDS + 10)
# In a prompt, and in decode; of three, of which rank 0 hears from rank 2 alone.
long_prompt = {**GREEDY, "prompt": "The mouse went on and on. " * 60, "max_tokens": 1}
for ranks, number, body in (
    (2, signal.SIGKILL, long_prompt),
    (2, signal.SIGKILL, LASTING),
    (3, signal.SIGSTOP, LASTING),
):
    job = Job(ranks)
    link = start_stream(job, body)
    first_piece(link) if body is LASTING else time.sleep(0.05)
    job.send(1, number)
    silent = f"rank 1: wait for rows of the stream: nothing came for {SECONDS} s"
    says = job.died(1) if number == signal.SIGKILL else silent
    job.ends(f"signal {number}, {ranks} ranks, {len(body['prompt'])} bytes", says, SECONDS + 15)
    check(not pieces(link)[1], "the client is not informed that its answer is whole")
# Rank 0 cannot end: the others do.
job = Job(2, "--drain-seconds", "1")
job.send(0, signal.SIGSTOP)
job.send(1, signal.SIGTERM)
job.ends("rank 0 is stopped", "rank 0 has not ended the job", 1 + 3 * SECONDS + 10)
# A rank that stops before it has begun, where MPI_Init itself would wait for ever.
server = [PROGRAM, "--port", "0", "--mpi", "--mpi-seconds", str(SECONDS)]
stopped = ["sh", "-c", 'kill -STOP $$; exec "$@"', "sh", *server]
run = [MPIRUN, *(OPEN_MPI if WITH == "openmpi" else []), "-n", "1", *server, ":", "-n", "1", *stopped]
done = subprocess.run(run, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
check(
    done.returncode != 0 and f"MPI_Init has waited {SECONDS} s" in done.stderr,
    f"a rank that has not begun: found {done}",
)
# Asked to stop while it loads.
job = Job(2, wait=False)
job.event_of_rank(0, "stage")
job.send(0, signal.SIGTERM)
check(job.process.wait(5 * SECONDS + 10) is not None, "SIGTERM in load")
check.end("ranks of " + WITH, begun)
