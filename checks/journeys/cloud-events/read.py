"""Reads CloudEvents in JSON from standard input, one a line, and prints their attributes and data. Uses the library of the CloudEvents project."""

import base64
import json
import sys

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

for line in sys.stdin:
    event = JSONFormat().read(CloudEvent, line)
    data = event.get_data()
    attributes = {name: value if isinstance(value, str) else value.isoformat() for name, value in event.get_attributes().items()}
    if isinstance(data, bytes):
        data = {"base64": base64.b64encode(data).decode()}
    print(json.dumps({"attributes": attributes, "data": data}), flush=True)
