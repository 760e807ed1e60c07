import { embeddedWorld } from "../harness/world.ts";
import { describeWildcards } from "./suites/wildcards.ts";

describeWildcards(embeddedWorld);
