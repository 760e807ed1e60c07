import { embeddedWorld } from "../harness/world.ts";
import { describeSettings } from "./suites/settings.ts";

describeSettings(embeddedWorld);
