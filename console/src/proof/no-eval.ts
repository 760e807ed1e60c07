import { config } from "zod";

// The page's policy forbids eval, which zod would use to check faster. A schema reads this setting when it is made, so this module loads before all schemas.
config({ jitless: true });

// The hash functions would try WebAssembly, which the policy also forbids and reports. Without WebAssembly they use JavaScript at once.
Object.defineProperty(globalThis, "WebAssembly", { value: undefined });
