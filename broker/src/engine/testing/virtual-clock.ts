export { VirtualClock } from "../../ports/testing/virtual-clock.ts";
