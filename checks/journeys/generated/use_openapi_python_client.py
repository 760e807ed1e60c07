"""Uses the client that openapi-python-client made: python use_openapi_python_client.py URL, with the client as package stele_client in the current folder."""

import base64
import os
import sys

sys.path.insert(0, os.getcwd())

from stele_client import Client
from stele_client.api.rest import get_event, list_, open_, publish_by_post, state
from stele_client.models import BrokerException, Event, PublishByPostJsonBody, PublishByPostJsonBodyExtensions, TopicPage, TopicState

client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)
assert open_.sync(client=client, topic="openapi-python-client") is True
extensions = PublishByPostJsonBodyExtensions.from_dict({"svc-format": "json"})
sent = publish_by_post.sync(client=client, body=PublishByPostJsonBody(topic="openapi-python-client", content='{"ä":1}', extensions=extensions))
assert sent.status == "SUCCESS", sent
event = get_event.sync(client=client, event_id=sent.event_id)
assert isinstance(event, Event), event
assert base64.b64decode(event.content).decode() == '{"ä":1}', event
assert event.extensions.to_dict() == {"svc-format": "json"}, event
found = state.sync(client=client, topic="openapi-python-client")
assert isinstance(found, TopicState) and found.sequence_number == 1, found
page = list_.sync(client=client, page_index=0, page_size=5)
assert isinstance(page, TopicPage) and "openapi-python-client" in [info.topic_name for info in page.topic_info_list], page
missing = state.sync(client=client, topic="missing")
assert isinstance(missing, BrokerException) and missing.code == 100101, missing
print("done")
