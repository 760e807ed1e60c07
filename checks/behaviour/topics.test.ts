import { onEveryWorld } from "../harness/worlds.ts";
import { describeTopics } from "./suites/topics.ts";

onEveryWorld(describeTopics);
