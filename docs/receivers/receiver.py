"""A receiver for Python 3.9 or later, without packages: checks the signature of Standard Webhooks, handles each event once, in order.

PORT=9000 SECRET=whsec_... python3 receiver.py
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ.get("SECRET", "").removeprefix("whsec_"))
if not KEY:
    sys.exit("SECRET is missing: everybody could sign with an empty key")
TOLERANCE_SECONDS = 300
BODY_BYTES_MAX = 2**24  # A batch has up to 1 MiB of content, or one event that is longer.
# A real receiver keeps these in its database, in the transaction that handles the event.
HANDLED = set()
LOCK = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        try:
            status = self.receive()
        except Exception as error:  # The broker tries again.
            print(error, file=sys.stderr, flush=True)
            status = 500
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def receive(self):
        """The status to answer."""
        length = int(self.headers.get("content-length", "0"))
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            return 413
        body = self.rfile.read(length)
        if not self.is_signed(body):
            return 401
        notification = json.loads(body)
        if "ping" in notification:  # The broker asks whether it may call.
            return 204
        events = notification["events"] if "events" in notification else [notification["event"]]  # A batch has "events".
        with LOCK:
            for event in events:
                if event["eventId"] not in HANDLED:
                    handle(event)
                HANDLED.add(event["eventId"])
        return 204

    def is_signed(self, body):
        """Several signatures are separated by spaces; one that fits is enough."""
        name, timestamp = self.headers.get("webhook-id", ""), self.headers.get("webhook-timestamp", "")
        if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
            return False
        digest = hmac.new(KEY, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
        expected = "v1," + base64.b64encode(digest).decode()
        given = self.headers.get("webhook-signature", "").split(" ")
        return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)

    def log_message(self, *arguments):
        """Logs no request: the receiver prints only events."""


def handle(event):
    content = base64.b64decode(event["content"]).decode(errors="replace")
    print(event["eventId"], event["topic"], content, flush=True)


sys.stdout.reconfigure(encoding="utf-8")
server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver)
print("listening", server.server_port, flush=True)
server.serve_forever()
