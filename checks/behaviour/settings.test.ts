import { onEveryWorld } from "../harness/worlds.ts";
import { describeSettings } from "./suites/settings.ts";

onEveryWorld(describeSettings);
