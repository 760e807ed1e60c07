"""Uses the client that openapi-generator made: python use_openapi_generator.py URL, with the client as package stele_client in the current folder."""

import base64
import os
import sys

sys.path.insert(0, os.getcwd())

from stele_client import ApiClient, BrokerException, Configuration, Event, PublishByPostRequest, RestApi, SendResult, TopicPage, TopicState

rest = RestApi(ApiClient(Configuration(host=sys.argv[1])))
assert rest.open(topic="openapi-generator").actual_instance is True
order = PublishByPostRequest(topic="openapi-generator", content='{"ä":1}', extensions={"svc-format": "json"})
sent = rest.publish_by_post(publish_by_post_request=order).actual_instance
assert isinstance(sent, SendResult) and sent.status == "SUCCESS", sent
event = rest.get_event(event_id=sent.event_id).actual_instance
assert isinstance(event, Event), event
assert base64.b64decode(event.content).decode() == '{"ä":1}', event
assert event.extensions == {"svc-format": "json"}, event
found = rest.state(topic="openapi-generator").actual_instance
assert isinstance(found, TopicState) and found.sequence_number == 1, found
page = rest.list(page_index=0, page_size=5).actual_instance
assert isinstance(page, TopicPage) and "openapi-generator" in [info.topic_name for info in page.topic_info_list], page
missing = rest.state(topic="missing").actual_instance
assert isinstance(missing, BrokerException) and missing.code == 100101, missing
print("done")
