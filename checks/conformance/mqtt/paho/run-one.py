"""Runs one test of an Eclipse Paho interoperability suite: FOLDER MODULE TEST PORT. Exits 0 when it passes."""

import importlib
import sys
import unittest

folder, module_name, test, port = sys.argv[1:5]
sys.path.insert(0, folder)
suite = importlib.import_module(module_name)

# The suites set these only when they are the main program.
prefix = module_name + "/" if module_name == "client_test5" else ""
suite.host = "127.0.0.1"
suite.port = int(port)
suite.topic_prefix = prefix
suite.topics = [prefix + topic for topic in ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")]
suite.wildtopics = [prefix + topic for topic in ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")]
suite.nosubscribe_topics = ("test/nosubscribe",)

result = unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite([suite.Test(test)]))
sys.exit(0 if result.wasSuccessful() else 1)
