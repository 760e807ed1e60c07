import { describeNamesAndContent } from "./suites/names-and-content.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeNamesAndContent);
