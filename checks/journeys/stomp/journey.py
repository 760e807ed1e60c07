"""Runs a stomp.py client: python journey.py VERSION PORT. Reads orders from standard input and prints reports, both as one JSON object a line."""

import json
import sys
import stomp

version, port = sys.argv[1], int(sys.argv[2])
goodbye = "goodbye"
beats = {"heartbeats": (10000, 10000)}


def say(what, **fields):
    print(json.dumps({"what": what, **fields}), flush=True)


class Listener(stomp.ConnectionListener):
    """Prints all reports: only the connection's receiver thread calls it, so no two threads print."""

    def on_connected(self, _frame):
        say("connected")

    def on_receipt(self, frame):
        if frame.headers["receipt-id"] != goodbye:
            say("receipt", headers=frame.headers)

    def on_message(self, frame):
        say("message", headers=frame.headers, body=frame.body)

    def on_error(self, frame):
        say("error", headers=frame.headers)

    def on_disconnected(self):
        say("disconnected")


def create():
    hosts = [("127.0.0.1", port)]
    if version == "1.0":
        connection = stomp.StompConnection10(hosts)
    elif version == "1.1":
        connection = stomp.StompConnection11(hosts, **beats)
    elif version == "1.2":
        connection = stomp.StompConnection12(hosts, **beats)
    else:
        connection = stomp.WSStompConnection(hosts, ws_path="/stomp", **beats)
    connection.set_listener("", Listener())
    return connection


def settle(command, headers):
    """Calls ack or nack with the arguments that the version needs; 1.0 has no nack."""
    if version == "1.0":
        command(headers["message-id"])
    elif version == "1.1":
        command(headers["message-id"], headers["subscription"])
    else:
        command(headers["ack"])


def unsubscribe(connection, destination, headers):
    """The library names a STOMP 1.0 subscription by its destination, and others by their id."""
    id = headers.pop("id")
    if version == "1.0":
        connection.unsubscribe(destination, headers=headers)
    else:
        connection.unsubscribe(id, headers=headers)


connection = None
for line in sys.stdin:
    order = json.loads(line)
    headers = order.get("headers", {})
    if order["do"] == "connect":
        connection = create()
        connection.connect(wait=True)
    elif order["do"] == "subscribe":
        connection.subscribe(order["destination"], id=headers.pop("id"), ack=headers.pop("ack", "auto"), headers=headers)
    elif order["do"] == "send":
        connection.send(order["destination"], order["body"], headers=headers)
    elif order["do"] == "unsubscribe":
        unsubscribe(connection, order["destination"], headers)
    elif order["do"] == "ack":
        settle(connection.ack, headers)
    elif order["do"] == "nack":
        settle(connection.nack, headers)
    elif order["do"] == "begin":
        connection.begin(order["transaction"])
    elif order["do"] == "commit":
        connection.commit(order["transaction"])
    elif order["do"] == "abort":
        connection.abort(order["transaction"])
    elif order["do"] == "disconnect":
        connection.disconnect(receipt=goodbye)
