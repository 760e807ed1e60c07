import { describeWildcards } from "./suites/wildcards.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeWildcards);
