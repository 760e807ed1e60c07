import { embeddedWorld } from "../harness/world.ts";
import { describeSubscriptions } from "./suites/subscriptions.ts";

describeSubscriptions(embeddedWorld);
