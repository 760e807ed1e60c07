"""python3 tail.py PATTERN [AFTER]: prints events as they come, and reconnects after a lost connection."""

import base64
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("STELE_URL", "http://127.0.0.1:8080")
KEY = os.environ.get("STELE_KEY")
# An idle tail gets an empty line every 15 seconds. A connection that is silent for much longer is lost.
SILENCE_SECONDS = 60


def tail(topic, after, place):
    """Yields the lines of one connection as objects, without the empty lines."""
    query = urllib.parse.urlencode({"topic": topic, "after": after})
    headers = {"accept": "application/x-ndjson"}
    if place:  # The broker prefers it to `after`, and accepts one that a reorg has removed; it would refuse such an eventId in `after`.
        headers["last-event-id"] = place
    if KEY:
        headers["authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(f"{URL}/tail?{query}", headers=headers)
    with urllib.request.urlopen(request, timeout=SILENCE_SECONDS) as response:
        for line in response:
            if line.endswith(b"\n") and line.strip():
                yield json.loads(line)


def show(text):
    """Prints a line. Ends the program if nothing reads its output: another connection would not help."""
    try:
        print(text, flush=True)
    except OSError as error:
        print(f"stdout: {error}", file=sys.stderr)
        os._exit(1)  # A usual exit would write to stdout again.


def main(topic, after="OFFSET_FIRST"):
    place = None
    while True:
        try:
            for line in tail(topic, after, place):
                if "eventId" in line:
                    content = base64.b64decode(line["content"]).decode(errors="replace")
                    show(f"{line['eventId']} {line['topic']} {content}")
                    place = line["eventId"]
                elif "resync" in line:  # A reorg removed events: go on with those after this place.
                    place = line["resync"]["id"]
        except urllib.error.HTTPError as error:
            said = f"{error.code} {error.read().decode(errors='replace')}"
            # Another try may help after these. The status may be that of a proxy before the broker.
            if error.code not in (408, 429) and error.code < 500:
                sys.exit(said)
            print(said, file=sys.stderr)
        except (OSError, http.client.HTTPException) as error:
            print(error, file=sys.stderr)
        time.sleep(1)


main(*sys.argv[1:])
