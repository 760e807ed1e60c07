import { embeddedWorld } from "../harness/world.ts";
import { describeNamesAndContent } from "./suites/names-and-content.ts";

describeNamesAndContent(embeddedWorld);
