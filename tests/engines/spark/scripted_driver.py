"""A driver process without Spark: it answers on its socket, and a stop takes as long as its batch.

It imports nothing of ours, so it starts at once: `python scripted_driver.py SOCKET BATCH_SECONDS DONE_FILE
ANSWERS`, where ANSWERS maps a request, or "" for all others, to the line that answers it.
"""

import json
import os
import socketserver
import sys
import time
from pathlib import Path
from threading import Event, Thread

STOPPED = Event()


class Answers(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        answers = json.loads(sys.argv[4])
        for line in self.rfile:
            asked = json.loads(line)["request"]["do"]
            if asked == "stop":
                time.sleep(float(sys.argv[2]))
                Path(sys.argv[3]).write_text("the batch is committed")
                STOPPED.set()
            self.wfile.write(answers.get(asked, answers[""]).encode())


if __name__ == "__main__":
    with socketserver.ThreadingUnixStreamServer(sys.argv[1], Answers) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        STOPPED.wait()
        os._exit(0)
