import { embeddedWorld } from "../harness/world.ts";
import { describeTopics } from "./suites/topics.ts";

describeTopics(embeddedWorld);
