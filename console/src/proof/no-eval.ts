import { config } from "zod";

// The page's policy forbids eval, which zod would use to check faster. zod reads this setting when it creates a schema, so this module must load before all
// schemas.
config({ jitless: true });

// The hash functions would try WebAssembly, which the policy also forbids and reports. Now they find none, and use JavaScript at once.
Object.defineProperty(globalThis, "WebAssembly", { value: undefined });
