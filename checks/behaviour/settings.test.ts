import { describeSettings } from "./suites/settings.ts";
import { onEveryWorld } from "./worlds.ts";

onEveryWorld(describeSettings);
