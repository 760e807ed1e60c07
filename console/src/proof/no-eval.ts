import { config } from "zod";

// The page's policy refuses code made from text, by which zod would check faster. A schema asks once, when it is made: this module comes before all of them.
config({ jitless: true });

// The hashes would try WebAssembly, which the policy refuses too, with a report. Without it they go straight to JavaScript.
Object.defineProperty(globalThis, "WebAssembly", { value: undefined });
