"""s3_peer - stands between walberg and an S3 server, and lets single requests go wrong.

A request is passed on as it is, for the host that it was signed for, unless `choose` names what
happens to it instead: a function of an Exchange, like those of TROUBLE. `story` remembers them. The
program finds it with environment(); the readers of the tests go past it.
"""
import http.client
import http.server
import random
import socket
import threading
import time

from lib.env import free_port

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}
STALL_SECONDS = 1.5


class Exchange:
    """One request, and what may be done about it."""

    def __init__(self, handler, target):
        self.handler = handler
        self.target = target
        self.method, self.path = handler.command, handler.path
        self.headers = [(k, v) for k, v in handler.headers.items() if k.lower() not in HOP_BY_HOP]
        self.body = handler.rfile.read(int(handler.headers.get("content-length") or 0))

    @property
    def writes(self):
        return self.method in ("PUT", "POST", "DELETE")

    @property
    def conditional(self):
        return any(k.lower() in ("if-none-match", "if-match") for k, _ in self.headers)

    def served(self):
        """The server does it: (status, headers, body) of its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            connection.putrequest(self.method, self.path, skip_host=True,
                                  skip_accept_encoding=True)
            for name, value in self.headers:
                connection.putheader(name, value)
            connection.endheaders(self.body or None)
            answer = connection.getresponse()
            headers = [(k, v) for k, v in answer.getheaders() if k.lower() not in HOP_BY_HOP]
            return answer.status, headers, answer.read()
        except OSError:                           # it is away; so is this
            return 502, [], b""
        finally:
            connection.close()

    @staticmethod
    def bytes_of(status, headers, body):
        names = {name.lower() for name, _ in headers}
        if "content-length" not in names:
            headers = [*headers, ("Content-Length", str(len(body)))]
        lines = [f"HTTP/1.1 {status} {http.client.responses.get(status, 'Unknown')}",
                 *(f"{name}: {value}" for name, value in headers), "", ""]
        return "\r\n".join(lines).encode("latin-1") + body

    def send(self, data):
        self.handler.wfile.write(data)
        self.handler.wfile.flush()

    def pass_on(self):
        self.send(self.bytes_of(*self.served()))

    def say(self, status, code, *headers):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        if self.method == "HEAD":
            body = b""
        self.send(self.bytes_of(status, [("Content-Type", "application/xml"), *headers], body))

    def cut(self):
        self.handler.close_connection = True
        try:
            self.handler.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass                                  # it was quicker


# --- what passes -----------------------------------------------------------------------------


def internal_error(exchange):
    exchange.say(500, "InternalError")


def slow_down(exchange):
    exchange.say(503, "SlowDown", ("Retry-After", "1"))


def done_but_500(exchange):
    exchange.served()
    exchange.say(500, "InternalError")


def done_but_503(exchange):
    exchange.served()
    exchange.say(503, "ServiceUnavailable")


def conflict(exchange):
    """Of two conditional writes at once; 500 for what cannot have one."""
    if exchange.conditional:
        exchange.say(409, "ConditionalRequestConflict")
    else:
        exchange.say(500, "InternalError")


def done_and_asked_again(exchange):
    """Something on the way repeats the request, and its second answer is what arrives: a 412 for a
    conditional write that succeeded."""
    exchange.served()
    exchange.pass_on()


def cut_before(exchange):
    exchange.cut()


def cut_without_answer(exchange):
    exchange.served()
    exchange.cut()


def cut_in_headers(exchange):
    exchange.send(exchange.bytes_of(*exchange.served())[:25])
    exchange.cut()


def cut_in_body(exchange):
    status, headers, body = exchange.served()
    answer = exchange.bytes_of(status, headers, body)
    exchange.send(answer[:len(answer) - (len(body) + 1) // 2])
    exchange.cut()


def wrong_length(exchange):
    """More is announced than comes."""
    status, headers, body = exchange.served()
    headers = [(k, v) for k, v in headers if k.lower() != "content-length"]
    exchange.send(exchange.bytes_of(status, [*headers, ("Content-Length", str(len(body) + 9))],
                                    body))
    exchange.cut()


def stall(exchange):
    time.sleep(STALL_SECONDS)
    exchange.pass_on()


def drip(exchange):
    """The answer comes in small pieces."""
    answer = exchange.bytes_of(*exchange.served())
    piece = len(answer) // 20 + 1
    for at in range(0, len(answer), piece):
        exchange.send(answer[at:at + piece])
        time.sleep(0.02)



TROUBLE = [internal_error, slow_down, done_but_500, done_but_503, conflict, done_and_asked_again,
           cut_before, cut_without_answer, cut_in_headers, cut_in_body, wrong_length, stall, drip]


# --- what a person has to mend ---------------------------------------------------------------


def denied(exchange):
    exchange.say(403, "AccessDenied")


def expired(exchange):
    exchange.say(400, "ExpiredToken")


def skewed(exchange):
    exchange.say(403, "RequestTimeTooSkewed")


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that left, or was cut off."""


class Peer:
    """Has what Storage asks of a server."""

    def __init__(self, server):
        self.server = server
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.choose = None                        # function of an Exchange: what happens, or None
        self.story = []
        self.count = 0
        self.lock = threading.Lock()
        self.listener = Listener(("127.0.0.1", self.port), self.handler())
        threading.Thread(target=self.listener.serve_forever, daemon=True).start()

    def handler(self):
        peer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do(self):
                try:
                    peer.exchange(Exchange(self, peer.server.port))
                except OSError:
                    self.close_connection = True  # the client left

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do

            def log_message(self, *_):
                pass

        return Handler

    def exchange(self, exchange):
        with self.lock:
            self.count += 1
            happens = self.choose(exchange) if self.choose else None
            if happens:
                self.story.append((self.count, exchange.method, exchange.path, happens.__name__))
        if happens:
            happens(exchange)
        else:
            exchange.pass_on()

    # --- what goes wrong -------------------------------------------------------------------

    def quiet(self):
        self.choose = None

    def noisy(self, seed, share, kinds=None):
        """A share of all requests, by random kinds."""
        dice = random.Random(seed)
        kinds = kinds or TROUBLE
        self.choose = lambda _: dice.choice(kinds) if dice.random() < share else None

    def nth(self, n, happens):
        """The nth request from now, and no other; whether it was reached: self.count."""
        target = self.count + n
        self.choose = lambda _: happens if self.count == target else None
        return target

    # --- as a server -----------------------------------------------------------------------

    def environment(self):
        return {**self.server.environment(), "AWS_ENDPOINT_URL": self.endpoint,
                "AWS_ENDPOINT_URL_S3": self.endpoint, "S3_ENDPOINT": self.endpoint}

    def filesystem(self):
        return self.server.filesystem()

    def end(self):
        self.listener.shutdown()
        self.listener.server_close()
