/** A drop-in for `@nestjs/throttler`: everything of it, with a `ThrottlerModule` that counts in a store of ours. */
import * as everything from "./throttler-module.ts";

export * from "./throttler-module.ts";
// For `require`, Node returns what a module exports under this name. That is theirs otherwise, by `export *`, since Node 23.
export { everything as "module.exports" };
