import { describeTopics } from "./suites/topics.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeTopics);
