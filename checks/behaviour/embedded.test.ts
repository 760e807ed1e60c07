import { embeddedWorld } from "../harness/world.ts";
import { describeBehaviour } from "./suites/all.ts";

describeBehaviour(embeddedWorld);
