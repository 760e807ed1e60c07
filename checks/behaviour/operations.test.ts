import { describeOperations } from "./suites/operations.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeOperations);
