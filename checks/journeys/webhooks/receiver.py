"""A receiver in Python. The package standardwebhooks verifies signatures, and the package cloudevents reads CloudEvents; both are from PyPI.

It reads orders from standard input and prints reports, both as one JSON object a line: see webhook-receiver.ts.
"""

import base64
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from standardwebhooks import Webhook, WebhookVerificationError

LOCK = threading.Lock()
# Verifies a request; None if the subscription has no secret.
VERIFIER = None


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # Sends head and body of an answer in one packet.

    def do_POST(self):
        try:
            self.receive()
        except Exception as error:
            self.answer(500)
            say({"what": "error", "error": repr(error)})

    def receive(self):
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        signatures = headers.get("webhook-signature", "").split()
        seen = {"what": "request", "path": self.path, "id": headers["webhook-id"], "type": headers["content-type"], "signatures": signatures}
        try:
            if VERIFIER is not None:
                VERIFIER.verify(body, headers)
        except WebhookVerificationError as error:
            self.answer(401)
            say({**seen, "status": 401, "events": [], "error": str(error)})
            return
        kind, events, call = read(headers, body)
        status = 204 if call is None else 200
        # Printed before the answer, because another thread may print the next request.
        say({**seen, "status": status, "kind": kind, "events": events})
        self.answer(status, b"" if call is None else json.dumps({"jsonrpc": "2.0", "id": call, "result": True}).encode())

    def answer(self, status, body=b""):
        self.send_response(status)
        if status != 204:
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        """Suppresses the log, because standard output has only reports."""


def say(line):
    with LOCK:
        print(json.dumps(line), flush=True)


def read(headers, body):
    """The kind and the events of a request, and its `id` if it is a JSON-RPC call."""
    content_type = headers["content-type"]
    if content_type == "application/cloudevents-batch+json":
        # The library cannot read a batch: read each element as an event.
        return "cloudevents", [to_event(JSONFormat().read(CloudEvent, json.dumps(one))) for one in json.loads(body)], None
    if content_type == "application/cloudevents+json" or "ce-id" in headers:
        event = http.from_http(http.HTTPMessage(headers=headers, body=body), JSONFormat(), CloudEvent)
        return ("ping", [], None) if event.get_type() == "stele.ping" else ("cloudevents", [to_event(event)], None)
    message = json.loads(body)
    is_call = message.get("jsonrpc") == "2.0"
    call = message["id"] if is_call else None
    params = message["params"] if is_call else message
    if "ping" in params or message.get("method") == "ping":
        return "ping", [], call
    events = params["events"] if "events" in params else [params["event"]]
    return message["method"] if is_call else "event", [to_interface_event(one) for one in events], call


def to_event(event):
    data = event.get_data()
    if not isinstance(data, (bytes, str)):
        data = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    content = data if isinstance(data, bytes) else data.encode()
    colour = event.get_extension("colour")
    return {"id": event.get_id(), "topic": event.get_subject(), "content": base64.b64encode(content).decode(), "colour": colour}


def to_interface_event(event):
    colour = event["extensions"].get("svc-colour")
    return {"id": event["eventId"], "topic": event["topic"], "content": event["content"], "colour": colour}


def take_orders():
    global VERIFIER
    for line in sys.stdin:
        key = json.loads(line)["key"]
        if key is None:
            VERIFIER = None
        else:
            VERIFIER = Webhook(key if key.startswith("whsec_") else key.encode())
        say({"what": "ready"})


server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
say({"what": "listening", "port": server.server_port})
take_orders()
