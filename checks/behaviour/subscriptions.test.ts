import { describeSubscriptions } from "./suites/subscriptions.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeSubscriptions);
