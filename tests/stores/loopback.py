"""An object store on this machine, for tests: an S3 server in a process of its own, and a proxy before it that puts
faults in its way."""

import socket
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>"
BUCKET = "bucket"


class Server:
    """The S3 server, which ends with the process that has it."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.asked("PUT", f"/{BUCKET}")

    def asked(self, method: str, path: str) -> bytes:
        """The answer to a request that goes by no client library."""
        connection = HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path)
        answer = connection.getresponse().read()
        connection.close()
        return answer

    def stored(self) -> list[str]:
        """The names of all objects."""
        listed = self.asked("GET", f"/{BUCKET}?list-type=2").decode()
        return [part.partition("</Key>")[0] for part in listed.split("<Key>")[1:]]

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


class Proxy:
    """A way to the server with faults: ``fault(method, path)`` says which one a request meets, None for none."""

    def __init__(self, port: int) -> None:
        self.fault: Callable[[str, str], str | None] = lambda method, path: None
        self.met: list[tuple[str, str, str | None]] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except ConnectionError:
                    self.close_connection = True

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fault = proxy.fault(self.command, self.path)
                proxy.met.append((self.command, self.path, fault))
                if fault == "lost":
                    self.connection.shutdown(socket.SHUT_RDWR)
                    self.close_connection = True
                    return
                if fault == "throttled":
                    self.give(503, [("Content-Type", "application/xml")], SLOW_DOWN, len(SLOW_DOWN))
                    return
                connection = HTTPConnection("127.0.0.1", port)
                connection.request(self.command, self.path, body, dict(self.headers))
                found = connection.getresponse()
                data = found.read()
                length = int(found.getheader("Content-Length") or len(data))
                dropped = ("content-length", "transfer-encoding", "connection", "date", "server")
                headers = [(name, value) for name, value in found.getheaders() if name.lower() not in dropped]
                connection.close()
                if fault == "partial":
                    data = data[: len(data) // 2]
                if fault == "shorter":  # and says so
                    data = data[: len(data) // 2]
                    length = len(data)
                if fault == "other":  # and no checksum of the server's, which the client would compare
                    headers = [pair for pair in headers if not pair[0].lower().startswith("x-amz-checksum")]
                    data = data[:-1] + bytes([data[-1] ^ 1])
                self.give(found.status, headers, data, length)

            def give(self, status: int, headers: list[tuple[str, str]], data: bytes, length: int) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
                    if len(data) < length:
                        self.connection.shutdown(socket.SHUT_RDWR)
                        self.close_connection = True

            do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = answer  # noqa: N815 - names of the library

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
