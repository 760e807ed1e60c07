"""python3 publish.py TOPIC CONTENT: opens a topic and publishes an event."""

import json
import os
import sys
import urllib.request

URL = os.environ.get("STELE_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("STELE_KEY")


def call(operation, **parameters):
    headers = {"content-type": "application/json"}
    if KEY:
        headers["authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(f"{URL}/rest/{operation}", json.dumps(parameters).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        answer = json.load(response)
    # REST answers a failure with status 200 and an object with a code.
    if isinstance(answer, dict) and "code" in answer:
        sys.exit(f"{operation}: {answer['code']} {answer['message']}")
    return answer


topic, content = sys.argv[1:]
call("open", topic=topic)
sent = call("publish", topic=topic, content=content)
# TIMEOUT: the broker does not know yet whether the event is on the chain.
if sent["status"] != "SUCCESS":
    sys.exit(f"publish: {sent['status']}")
print(sent["eventId"])
