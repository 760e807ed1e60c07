import { onEveryWorld } from "../harness/worlds.ts";
import { describeWildcards } from "./suites/wildcards.ts";

onEveryWorld(describeWildcards);
