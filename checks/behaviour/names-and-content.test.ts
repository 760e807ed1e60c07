import { onEveryWorld } from "../harness/worlds.ts";
import { describeNamesAndContent } from "./suites/names-and-content.ts";

onEveryWorld(describeNamesAndContent);
