import { onEveryWorld } from "../harness/worlds.ts";
import { describeSubscriptions } from "./suites/subscriptions.ts";

onEveryWorld(describeSubscriptions);
