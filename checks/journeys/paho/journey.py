"""Runs a Paho client: python journey.py PORT VERSION CLIENT. Reads orders from standard input and prints reports, both as one JSON object a line."""

import json
import sys
import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

port, version, client_id = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
is_five = version == 5


def say(what, **fields):
    print(json.dumps({"what": what, **fields}), flush=True)


def on_connect(client, _data, flags, reason, _properties):
    say("connected", present=flags.session_present, ok=not reason.is_failure)


def on_message(_client, _data, message):
    user = dict(getattr(message.properties, "UserProperty", [])) if is_five else {}
    say("message", topic=message.topic, payload=message.payload.decode(), qos=message.qos, retained=message.retain, user=user)


client = mqtt.Client(
    mqtt.CallbackAPIVersion.VERSION2,
    client_id=client_id,
    protocol=mqtt.MQTTv5 if is_five else mqtt.MQTTv311,
    clean_session=None if is_five else False,
)
client.on_connect = on_connect
client.on_message = on_message
client.on_subscribe = lambda _client, _data, _mid, codes, _properties: say("subscribed", codes=[code.value for code in codes])
client.on_publish = lambda _client, _data, mid, _reason, _properties: say("published", mid=mid)


def connect():
    if not is_five:
        client.connect("127.0.0.1", port)
        return
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 600
    client.connect("127.0.0.1", port, clean_start=False, properties=properties)


def publish(order):
    properties = None
    if is_five and "user" in order:
        properties = Properties(PacketTypes.PUBLISH)
        properties.UserProperty = list(order["user"].items())
    client.publish(order["topic"], order["payload"], order["qos"], order.get("retain", False), properties=properties)


for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "connect":
        connect()
        client.loop_start()
    elif order["do"] == "subscribe":
        client.subscribe(order["filter"], order["qos"])
    elif order["do"] == "publish":
        publish(order)
    elif order["do"] == "disconnect":
        client.disconnect()
        client.loop_stop()
        say("disconnected")
